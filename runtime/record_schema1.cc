// Records of schema 1: tiles for attention in row blocks, which still hold.
// What they say of decoding does not: its kernel has since been written anew
// and reads no tile.
#include "runtime/problem.h"
#include "runtime/record_text.h"

namespace heed {
namespace {

bool EntryFromSchema1(const Json& json, const std::string& place,
                      RecordEntry* entry, std::string* note, std::string* why) {
  JsonReader reader(json, place, why);
  const Json* tile = reader.Member("tile");
  const Json* default_tile = reader.Member("default_tile");
  const Json* shape_class = reader.Member("class");
  if (!reader.ok() ||
      !TileFromJson(*tile, place + ".tile", &entry->config.tile, why) ||
      !TileFromJson(*default_tile, place + ".default_tile",
                    &entry->default_config.tile, why)) {
    return false;
  }
  JsonReader of_class(*shape_class, place + ".class", why);
  int threads = 0;
  of_class.Integer("threads", 1, 1 << 20, &threads);
  bool adopted = false;
  reader.Text("problem", &entry->problem);
  reader.Text("target", &entry->target);
  reader.Bool("adopted", &adopted);
  reader.Number("gain", &entry->gain.median);
  reader.Number("gain_low", &entry->gain.low);
  reader.Number("gain_high", &entry->gain.high);
  reader.Integer("rounds", 0, 1 << 30, &entry->rounds);
  reader.Number("default_us", &entry->default_us);
  reader.Number("tuned_us", &entry->tuned_us);
  reader.Number("pct_peak", &entry->pct_peak);
  if (!reader.ok() || !of_class.ok()) return false;
  heed_problem problem;
  if (ParseProblem(entry->problem, &problem) != HEED_OK ||
      ValidateProblem(problem) != HEED_OK) {
    reader.Failed("problem", "expected a problem string");
    return false;
  }
  entry->default_target = entry->target;
  entry->decision = adopted ? Decision::kAdopted : Decision::kKeptDefault;
  entry->shape_class = ClassOf(problem, threads);
  if (entry->shape_class.decode) {
    *note = "tiles for decoding, which reads none any more";
  }
  return true;
}

}  // namespace

bool RecordFromSchema1(const Json& json, Record* record, std::string* why) {
  JsonReader reader(json, "record", why);
  reader.Integer("kernel_abi", 0, INT32_MAX, &record->kernel_abi);
  const Json* machine = reader.Member("machine");
  const Json* made_by = reader.Member("made_by");
  const Json* entries = reader.Member("entries");
  if (!reader.ok() || !MachineFromJson(*machine, record, why)) return false;

  RecordRun run;
  JsonReader provenance(*made_by, "made_by", why);
  provenance.Text("library_version", &run.library_version);
  provenance.Text("compiler", &run.compiler);
  provenance.Text("highway", &run.highway);
  provenance.Text("created", &run.ended);
  provenance.Number("fma_gflops_1t", &run.fma_gflops_1t);
  provenance.Number("fma_gflops_all", &run.fma_gflops_all);
  provenance.Number("read_gbs_1t", &run.read_gbs_1t);
  provenance.Number("read_gbs_all", &run.read_gbs_all);
  if (!provenance.ok()) return false;
  run.id = "schema-1";
  run.tool = "heed tune " + run.library_version;
  run.started = run.ended;
  record->runs.push_back(run);

  if (!entries->is_array() || entries->size() > kMaxRecordEntries) {
    reader.Failed("entries", "expected an array of at most " +
                                 std::to_string(kMaxRecordEntries));
    return false;
  }
  size_t skipped = 0;
  std::string first_note;
  for (size_t i = 0; i < entries->size(); ++i) {
    RecordEntry entry;
    std::string note;
    if (!EntryFromSchema1((*entries)[i], "entries[" + std::to_string(i) + "]",
                          &entry, &note, why)) {
      return false;
    }
    entry.run = run.id;
    entry.confirmed = run.ended;
    bool known = false;
    for (const RecordEntry& other : record->entries) {
      known = known || other.shape_class == entry.shape_class;
    }
    if (!note.empty()) {
      record->skipped.push_back(
          {entry.shape_class, entry.problem, note, entry.run, /*json=*/""});
    } else if (known) {
      note = "its class is there already";
    }
    if (note.empty()) {
      record->entries.push_back(entry);
    } else if (++skipped == 1) {
      first_note = note;
    }
  }
  if (skipped != 0) {
    record->notes.push_back(std::to_string(skipped) + " of " +
                            std::to_string(entries->size()) +
                            " entries skipped: " + first_note);
  }
  return true;
}

}  // namespace heed
