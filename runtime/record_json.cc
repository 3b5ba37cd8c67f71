// Records as JSON text. The schema is exactly what the functions below read.
#include <algorithm>
#include <cstdint>

#include "runtime/json_reader.h"
#include "runtime/problem.h"
#include "runtime/record.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

constexpr size_t kMaxBytes = size_t{4} << 20;
constexpr int kMaxDepth = 16;
constexpr size_t kMaxEntries = 10000;
constexpr int64_t kMaxLength = int64_t{1} << 40;

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

Json CacheToJson(const Cache& cache) {
  return {{"bytes", cache.bytes},
          {"ways", cache.ways},
          {"cores_sharing", cache.cores_sharing}};
}

Json TileToJson(const Tile& tile) {
  return {{"row_block", tile.row_block},
          {"key_tile", tile.key_tile},
          {"pack_k", static_cast<int>(tile.pack_k)},
          {"pack_v", static_cast<int>(tile.pack_v)},
          {"prefetch", tile.prefetch}};
}

Json EntryToJson(const RecordEntry& entry) {
  const ShapeClass& c = entry.shape_class;
  const char* dtype = DtypeName(c.dtype);
  return {{"class",
           {{"dtype", dtype == nullptr ? "unknown" : dtype},
            {"dim_qk", c.dim_qk},
            {"dim_v", c.dim_v},
            {"causal", c.causal},
            {"group", c.group},
            {"len_q", c.len_q},
            {"len_k", c.len_k},
            {"threads", c.threads}}},
          {"problem", entry.problem},
          {"target", entry.target},
          {"tile", TileToJson(entry.tile)},
          {"default_tile", TileToJson(entry.default_tile)},
          {"adopted", entry.adopted},
          {"gain", entry.gain},
          {"gain_low", entry.gain_low},
          {"gain_high", entry.gain_high},
          {"rounds", entry.rounds},
          {"default_us", entry.default_us},
          {"tuned_us", entry.tuned_us},
          {"pct_peak", entry.pct_peak}};
}

bool CacheFromJson(const Json& json, const std::string& place, Cache* cache,
                   std::string* why) {
  JsonReader reader(json, place, why);
  reader.Integer("bytes", 0, int64_t{1} << 40, &cache->bytes);
  reader.Integer("ways", 0, 1 << 20, &cache->ways);
  reader.Integer("cores_sharing", 0, 1 << 20, &cache->cores_sharing);
  return reader.ok();
}

bool TileFromJson(const Json& json, const std::string& place, Tile* tile,
                  std::string* why) {
  JsonReader reader(json, place, why);
  reader.Integer("row_block", 1, kMaxRowBlock, &tile->row_block);
  reader.Integer("key_tile", kStep, kMaxKeyTile, &tile->key_tile);
  reader.Integer("pack_k", 0, 2, &tile->pack_k);
  reader.Integer("pack_v", 0, 2, &tile->pack_v);
  reader.Bool("prefetch", &tile->prefetch);
  if (reader.ok() && tile->key_tile % kStep != 0) {
    reader.Failed("key_tile",
                  "expected a multiple of " + std::to_string(kStep));
  }
  return reader.ok();
}

bool ClassFromJson(const Json& json, const std::string& place, ShapeClass* c,
                   std::string* why) {
  JsonReader reader(json, place, why);
  std::string dtype;
  reader.Text("dtype", &dtype);
  reader.Integer("dim_qk", 0, kMaxLength, &c->dim_qk);
  reader.Integer("dim_v", 0, kMaxLength, &c->dim_v);
  reader.Bool("causal", &c->causal);
  reader.Integer("group", 1, kMaxLength, &c->group);
  reader.Integer("len_q", 1, kMaxLength, &c->len_q);
  reader.Integer("len_k", 1, kMaxLength, &c->len_k);
  reader.Integer("threads", 1, 1 << 20, &c->threads);
  if (!reader.ok()) return false;
  for (int32_t known : {HEED_F32, HEED_F16, HEED_BF16}) {
    if (dtype == DtypeName(known)) c->dtype = known;
  }
  if (c->dtype == 0) reader.Failed("dtype", "expected f32, f16 or bf16");
  for (int64_t length : {c->len_q, c->len_k}) {
    if ((length & (length - 1)) != 0) {
      reader.Failed("len_q and len_k", "expected powers of two");
    }
  }
  return reader.ok();
}

bool EntryFromJson(const Json& json, const std::string& place,
                   RecordEntry* entry, std::string* why) {
  JsonReader reader(json, place, why);
  const Json* shape_class = reader.Member("class");
  const Json* tile = reader.Member("tile");
  const Json* default_tile = reader.Member("default_tile");
  if (!reader.ok() ||
      !ClassFromJson(*shape_class, place + ".class", &entry->shape_class,
                     why) ||
      !TileFromJson(*tile, place + ".tile", &entry->tile, why) ||
      !TileFromJson(*default_tile, place + ".default_tile",
                    &entry->default_tile, why)) {
    return false;
  }
  reader.Text("problem", &entry->problem);
  reader.Text("target", &entry->target);
  reader.Bool("adopted", &entry->adopted);
  reader.Number("gain", &entry->gain);
  reader.Number("gain_low", &entry->gain_low);
  reader.Number("gain_high", &entry->gain_high);
  reader.Integer("rounds", 0, 1 << 30, &entry->rounds);
  reader.Number("default_us", &entry->default_us);
  reader.Number("tuned_us", &entry->tuned_us);
  reader.Number("pct_peak", &entry->pct_peak);
  return reader.ok();
}

bool MachineFromJson(const Json& json, Record* record, std::string* why) {
  Machine& machine = record->machine;
  JsonReader reader(json, "machine", why);
  reader.Text("key", &record->machine_key);
  reader.Text("vendor", &machine.vendor);
  reader.Integer("family", 0, INT32_MAX, &machine.family);
  reader.Integer("model", 0, INT32_MAX, &machine.model);
  reader.Integer("stepping", 0, INT32_MAX, &machine.stepping);
  reader.Text("brand", &machine.brand);
  reader.Text("cache_source", &machine.cache_source);
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

bool RecordFromJson(const Json& json, Record* record, std::string* why) {
  JsonReader reader(json, "record", why);
  std::string schema;
  int version = 0;
  reader.Text("schema", &schema);
  if (reader.ok() && schema != "heed-tuning") {
    reader.Failed("schema", "expected \"heed-tuning\"");
  }
  reader.Integer("schema_version", 1, INT32_MAX, &version);
  if (reader.ok() && version > kRecordSchema) {
    reader.Failed("schema_version",
                  std::to_string(version) +
                      " is newer than this library understands (" +
                      std::to_string(kRecordSchema) + ")");
  }
  reader.Integer("kernel_abi", 0, INT32_MAX, &record->kernel_abi);
  const Json* machine = reader.Member("machine");
  const Json* made_by = reader.Member("made_by");
  const Json* entries = reader.Member("entries");
  if (!reader.ok() || !MachineFromJson(*machine, record, why)) return false;

  JsonReader provenance(*made_by, "made_by", why);
  provenance.Text("library_version", &record->library_version);
  provenance.Text("compiler", &record->compiler);
  provenance.Text("highway", &record->highway);
  provenance.Text("created", &record->created);
  provenance.Text("command", &record->command);
  provenance.Number("fma_gflops_1t", &record->fma_gflops_1t);
  provenance.Number("fma_gflops_all", &record->fma_gflops_all);
  provenance.Number("read_gbs_1t", &record->read_gbs_1t);
  provenance.Number("read_gbs_all", &record->read_gbs_all);
  if (!provenance.ok()) return false;

  if (!entries->is_array() || entries->size() > kMaxEntries) {
    reader.Failed("entries", "expected an array of at most " +
                                 std::to_string(kMaxEntries));
    return false;
  }
  record->entries.resize(entries->size());
  for (size_t i = 0; i < entries->size(); ++i) {
    if (!EntryFromJson((*entries)[i], "entries[" + std::to_string(i) + "]",
                       &record->entries[i], why)) {
      return false;
    }
  }
  return true;
}

}  // namespace

std::string ToJson(const Record& record) {
  const Machine& machine = record.machine;
  Json json;
  json["schema"] = "heed-tuning";
  json["schema_version"] = kRecordSchema;
  json["kernel_abi"] = record.kernel_abi;
  json["machine"] = {{"key", record.machine_key},
                     {"vendor", machine.vendor},
                     {"family", machine.family},
                     {"model", machine.model},
                     {"stepping", machine.stepping},
                     {"brand", machine.brand},
                     {"targets", machine.targets},
                     {"l1d", CacheToJson(machine.l1d)},
                     {"l2", CacheToJson(machine.l2)},
                     {"l3", CacheToJson(machine.l3)},
                     {"cache_source", machine.cache_source},
                     {"cores", machine.cores},
                     {"threads", machine.threads}};
  json["made_by"] = {{"library_version", record.library_version},
                     {"compiler", record.compiler},
                     {"highway", record.highway},
                     {"created", record.created},
                     {"command", record.command},
                     {"fma_gflops_1t", record.fma_gflops_1t},
                     {"fma_gflops_all", record.fma_gflops_all},
                     {"read_gbs_1t", record.read_gbs_1t},
                     {"read_gbs_all", record.read_gbs_all}};
  json["entries"] = Json::array();
  for (const RecordEntry& entry : record.entries) {
    json["entries"].push_back(EntryToJson(entry));
  }
  // Bytes that are not UTF-8 (a command line) are replaced, not thrown at.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

bool FromJson(const std::string& text, Record* record, std::string* why) {
  *record = Record{};
  if (text.size() > kMaxBytes) {
    *why = "larger than 4 MiB";
    return false;
  }
  if (Depth(text) > kMaxDepth) {
    *why = "nested deeper than " + std::to_string(kMaxDepth);
    return false;
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) {
    *why = "not valid JSON";
    return false;
  }
  return RecordFromJson(json, record, why);
}

}  // namespace heed
