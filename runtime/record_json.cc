// Records from JSON text. Nothing is believed: every number has a range, every
// word a list.
#include <algorithm>
#include <cstdint>
#include <unordered_set>

#include "runtime/problem.h"
#include "runtime/record_text.h"

namespace heed {
namespace {

constexpr int kMaxDepth = 16;

// Nesting of the text's brackets outside strings, so that a hostile file is
// refused before a recursive parser or destructor sees it.
int Depth(const std::string& text) {
  int depth = 0, deepest = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      deepest = std::max(deepest, ++depth);
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return deepest;
}

bool CacheFromJson(const Json& json, const std::string& place, Cache* cache,
                   std::string* why) {
  JsonReader reader(json, place, why);
  reader.Integer("bytes", 0, int64_t{1} << 40, &cache->bytes);
  reader.Integer("ways", 0, 1 << 20, &cache->ways);
  reader.Integer("cores_sharing", 0, 1 << 20, &cache->cores_sharing);
  return reader.ok();
}

bool RunFromJson(const Json& json, const std::string& place, RecordRun* run,
                 std::string* why) {
  JsonReader reader(json, place, why);
  reader.Line("id", &run->id);
  reader.Line("tool", &run->tool);
  reader.Integer("seed", 0, INT64_MAX, &run->seed);
  reader.Line("started", &run->started);
  reader.Line("ended", &run->ended);
  reader.Line("os", &run->os);
  reader.Number("load_1m", &run->load_1m);
  reader.Number("steal_pct", &run->steal_pct);
  reader.Number("psi_cpu_some_pct", &run->psi_cpu_some_pct);
  reader.Integer("rounds", 0, INT32_MAX, &run->rounds);
  reader.Integer("rounds_discarded", 0, INT32_MAX, &run->rounds_discarded);
  reader.Number("quiet", &run->quiet);
  reader.Number("aa_p95_pct", &run->aa_p95_pct);
  reader.Number("min_gain_pct", &run->min_gain_pct);
  reader.Number("demand_pct", &run->demand_pct);
  const Json* argv = reader.Member("argv");
  const Json* build = reader.Member("build");
  const Json* peak = reader.Member("peak");
  if (!reader.ok()) return false;
  if (!argv->is_array() || argv->size() > 64) {
    reader.Failed("argv", "expected at most 64 strings");
    return false;
  }
  for (const Json& argument : *argv) {
    if (!argument.is_string() ||
        argument.get_ref<const std::string&>().size() > kMaxJsonLine) {
      reader.Failed("argv", "expected strings");
      return false;
    }
    run->argv.push_back(argument.get<std::string>());
  }
  JsonReader of_build(*build, place + ".build", why);
  of_build.Line("lib_version", &run->library_version);
  of_build.Line("git", &run->git);
  of_build.Line("compiler", &run->compiler);
  of_build.Line("build_type", &run->build_type);
  of_build.Line("highway", &run->highway);
  of_build.Line("tbb", &run->tbb);
  if (!of_build.ok()) return false;
  JsonReader of_peak(*peak, place + ".peak", why);
  of_peak.Number("fma_gflops_1t", &run->fma_gflops_1t);
  of_peak.Number("fma_gflops_all", &run->fma_gflops_all);
  of_peak.Number("read_gbs_1t", &run->read_gbs_1t);
  of_peak.Number("read_gbs_all", &run->read_gbs_all);
  return of_peak.ok();
}

bool EntriesFromJson(const Json& json, Record* record, std::string* why) {
  std::unordered_set<ShapeClass, ShapeClassHash> seen;
  std::string first_note;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string place = "entries[" + std::to_string(i) + "]";
    RecordEntry entry;
    std::string note;
    if (!EntryFromJson(json[i], place, &entry, &note, why)) return false;
    if (!seen.insert(entry.shape_class).second) {
      *why = place + ": the class " + ToString(entry.shape_class) +
             " is there already";
      return false;
    }
    if (note.empty()) {
      record->entries.push_back(std::move(entry));
      continue;
    }
    if (record->skipped.empty()) first_note = place + ": " + note;
    record->skipped.push_back(
        {entry.shape_class, entry.problem, note, entry.run, json[i].dump()});
  }
  if (!record->skipped.empty()) {
    record->notes.push_back(std::to_string(record->skipped.size()) + " of " +
                            std::to_string(json.size()) +
                            " entries skipped: " + first_note);
  }
  return true;
}

bool Intact(const Json& json, std::string* why) {
  JsonReader top(json, "record", why);
  const Json* integrity = top.Member("integrity");
  if (!top.ok()) return false;
  JsonReader reader(*integrity, "integrity", why);
  std::string algo, value;
  reader.Text("algo", &algo);
  reader.Text("value", &value);
  if (!reader.ok()) return false;
  if (algo != "fnv1a64") {
    reader.Failed("algo", "expected \"fnv1a64\"");
  } else if (value != IntegrityOf(json)) {
    *why =
        "integrity: the hash does not match, so the file is damaged or was "
        "edited by hand";
    return false;
  }
  return reader.ok();
}

bool RecordFromJson(const Json& json, Record* record, std::string* why) {
  JsonReader reader(json, "record", why);
  std::string schema;
  reader.Text("schema", &schema);
  if (reader.ok() && schema != "heed-tuning") {
    reader.Failed("schema", "expected \"heed-tuning\"");
  }
  reader.Integer("schema_version", 1, INT32_MAX, &record->schema_version);
  if (!reader.ok()) return false;
  if (record->schema_version == 1) return RecordFromSchema1(json, record, why);
  int min_reader = 0;
  reader.Integer("min_reader", 1, INT32_MAX, &min_reader);
  if (reader.ok() && min_reader > kRecordSchema) {
    *why = "record schema " + std::to_string(record->schema_version) +
           " is newer than this library understands (" +
           std::to_string(kRecordSchema) + "); upgrade the library or re-tune";
    return false;
  }
  if (!reader.ok() || !Intact(json, why)) return false;
  reader.Integer("kernel_abi", 0, INT32_MAX, &record->kernel_abi);
  const Json* machine = reader.Member("machine");
  const Json* runs = reader.Member("runs");
  const Json* entries = reader.Member("entries");
  if (!reader.ok() || !MachineFromJson(*machine, record, why)) return false;
  if (!runs->is_array() || runs->size() > kMaxRecordRuns) {
    reader.Failed("runs", "expected an array of at most " +
                              std::to_string(kMaxRecordRuns));
    return false;
  }
  record->runs.resize(runs->size());
  for (size_t i = 0; i < runs->size(); ++i) {
    if (!RunFromJson((*runs)[i], "runs[" + std::to_string(i) + "]",
                     &record->runs[i], why)) {
      return false;
    }
  }
  if (!entries->is_array() || entries->size() > kMaxRecordEntries) {
    reader.Failed("entries", "expected an array of at most " +
                                 std::to_string(kMaxRecordEntries));
    return false;
  }
  const auto retired = json.find("retired");
  if (retired != json.end() && retired->is_array() && !retired->empty()) {
    record->retired = (*retired)[0].dump();
  }
  return EntriesFromJson(*entries, record, why);
}

}  // namespace

bool MachineFromJson(const Json& json, Record* record, std::string* why) {
  Machine& machine = record->machine;
  JsonReader reader(json, "machine", why);
  reader.Line("key", &record->machine_key);
  reader.Line("vendor", &machine.vendor);
  reader.Integer("family", 0, INT32_MAX, &machine.family);
  reader.Integer("model", 0, INT32_MAX, &machine.model);
  reader.Integer("stepping", 0, INT32_MAX, &machine.stepping);
  reader.Line("brand", &machine.brand);
  reader.Line("cache_source", &machine.cache_source);
  reader.Integer("cores", 1, 1 << 20, &machine.cores);
  reader.Integer("threads", 1, 1 << 20, &machine.threads);
  const Json* targets = reader.Member("targets");
  const Json* l1d = reader.Member("l1d");
  const Json* l2 = reader.Member("l2");
  const Json* l3 = reader.Member("l3");
  if (!reader.ok()) return false;
  if (!targets->is_array() || targets->empty() || targets->size() > 64) {
    reader.Failed("targets", "expected 1 to 64 names");
    return false;
  }
  for (const Json& target : *targets) {
    if (!target.is_string()) {
      reader.Failed("targets", "expected strings");
      return false;
    }
    machine.targets.push_back(target.get<std::string>());
  }
  return CacheFromJson(*l1d, "machine.l1d", &machine.l1d, why) &&
         CacheFromJson(*l2, "machine.l2", &machine.l2, why) &&
         CacheFromJson(*l3, "machine.l3", &machine.l3, why);
}

bool FromJson(const std::string& text, Record* record, std::string* why) {
  *record = Record{};
  if (text.size() > kMaxRecordBytes) {
    *why = "larger than 4 MiB";
    return false;
  }
  if (Depth(text) > kMaxDepth) {
    *why = "nested deeper than " + std::to_string(kMaxDepth);
    return false;
  }
  try {
    return RecordFromJson(Json::parse(text), record, why);
  } catch (const Json::parse_error& error) {
    const bool cut = error.byte >= text.size();
    *why = (cut ? "truncated JSON at byte " : "not valid JSON at byte ") +
           std::to_string(std::min(error.byte, text.size()));
  } catch (const Json::exception&) {
    *why = "not valid JSON";
  }
  return false;
}

}  // namespace heed
