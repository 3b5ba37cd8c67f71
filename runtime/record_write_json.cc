// Records to JSON text: results/schema/tuning.schema.json describes it.
#include "runtime/fnv.h"
#include "runtime/problem.h"
#include "runtime/record_text.h"

namespace heed {
namespace {

Json CacheToJson(const Cache& cache) {
  return {{"bytes", cache.bytes},
          {"ways", cache.ways},
          {"cores_sharing", cache.cores_sharing}};
}

Json ConfigToJson(const std::string& target, const Config& config) {
  return {{"target", target},
          {"row_block", config.tile.row_block},
          {"key_tile", config.tile.key_tile},
          {"pack_k", static_cast<int>(config.tile.pack_k)},
          {"pack_v", static_cast<int>(config.tile.pack_v)},
          {"prefetch", config.tile.prefetch},
          {"tasks_per_worker", config.cut.tasks_per_worker},
          {"decode_rows", config.cut.decode_rows}};
}

Json GainToJson(const Gain& gain) {
  return {{"median", gain.median}, {"ci95", {gain.low, gain.high}}};
}

const char* MaskName(int32_t mask) {
  return mask == HEED_MASK_BOOL    ? "bool"
         : mask == HEED_MASK_F32   ? "f32"
         : mask == HEED_MASK_DTYPE ? "own"
                                   : "none";
}

const char* CausalName(int32_t causal) {
  return causal == HEED_CAUSAL_TOP_LEFT       ? "top_left"
         : causal == HEED_CAUSAL_BOTTOM_RIGHT ? "bottom_right"
         : causal == HEED_CAUSAL_OFFSET       ? "offset"
                                              : "none";
}

Json ClassToJson(const ShapeClass& c) {
  const char* dtype = DtypeName(c.dtype);
  return {{"op", c.decode ? "decode" : "prefill"},
          {"dtype", dtype == nullptr ? "unknown" : dtype},
          {"dim_qk", c.dim_qk},
          {"dim_v", c.dim_v},
          {"group", c.group},
          {"len_q", c.len_q},
          {"len_k", c.len_k},
          {"causal", CausalName(c.causal)},
          {"window", c.window},
          {"mask", MaskName(c.mask)},
          {"mask_block_q", c.mask_block_q},
          {"mask_block_k", c.mask_block_k},
          {"softcap", c.softcap},
          {"alibi", c.alibi},
          {"sinks", c.sinks},
          {"ragged", c.ragged},
          {"page_size", c.page_size},
          {"pieces", c.pieces},
          {"threads", c.threads}};
}

Json RunToJson(const RecordRun& run) {
  return {{"id", run.id},
          {"tool", run.tool},
          {"argv", run.argv},
          {"seed", run.seed},
          {"started", run.started},
          {"ended", run.ended},
          {"build",
           {{"lib_version", run.library_version},
            {"git", run.git},
            {"compiler", run.compiler},
            {"build_type", run.build_type},
            {"highway", run.highway},
            {"tbb", run.tbb}}},
          {"os", run.os},
          {"load_1m", run.load_1m},
          {"steal_pct", run.steal_pct},
          {"psi_cpu_some_pct", run.psi_cpu_some_pct},
          {"rounds", run.rounds},
          {"rounds_discarded", run.rounds_discarded},
          {"quiet", run.quiet},
          {"aa_p95_pct", run.aa_p95_pct},
          {"min_gain_pct", run.min_gain_pct},
          {"demand_pct", run.demand_pct},
          {"peak",
           {{"fma_gflops_1t", run.fma_gflops_1t},
            {"fma_gflops_all", run.fma_gflops_all},
            {"read_gbs_1t", run.read_gbs_1t},
            {"read_gbs_all", run.read_gbs_all}}}};
}

}  // namespace

std::string IntegrityOf(const Json& record) {
  uint64_t hash = kFnvStart;
  for (const auto& [name, value] : record.items()) {
    if (name == "integrity") continue;
    hash = Fnv1a(
        name + ":" +
            value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n",
        hash);
  }
  static const char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) {
    text += kDigits[hash >> shift & 15];
  }
  return text;
}

Json EntryToJson(const RecordEntry& entry) {
  Json json = {
      {"class", ClassToJson(entry.shape_class)},
      {"problem", entry.problem},
      {"config", ConfigToJson(entry.target, entry.config)},
      {"default", ConfigToJson(entry.default_target, entry.default_config)},
      {"decision", DecisionName(entry.decision)},
      {"reason", entry.reason},
      {"gain", GainToJson(entry.gain)},
      {"rounds", entry.rounds},
      {"guards", Json::array()},
      {"default_us", entry.default_us},
      {"tuned_us", entry.tuned_us},
      {"pct_peak", entry.pct_peak},
      {"candidates", entry.candidates},
      {"search_samples", entry.search_samples},
      {"run", entry.run},
      {"confirmed", entry.confirmed}};
  for (const Guard& guard : entry.guards) {
    json["guards"].push_back(
        {{"problem", guard.problem}, {"gain", GainToJson(guard.gain)}});
  }
  return json;
}

std::string ToJson(const Record& record) {
  const Machine& machine = record.machine;
  Json json;
  json["schema"] = "heed-tuning";
  json["schema_version"] = kRecordSchema;
  json["min_reader"] = kRecordMinReader;
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
  json["runs"] = Json::array();
  for (const RecordRun& run : record.runs) {
    json["runs"].push_back(RunToJson(run));
  }
  json["entries"] = Json::array();
  for (const RecordEntry& entry : record.entries) {
    json["entries"].push_back(EntryToJson(entry));
  }
  for (const SkippedEntry& skipped : record.skipped) {
    const Json entry =
        Json::parse(skipped.json, nullptr, /*allow_exceptions=*/false);
    if (!entry.is_discarded()) json["entries"].push_back(entry);
  }
  json["retired"] = Json::array();
  if (!record.retired.empty()) {
    const Json retired =
        Json::parse(record.retired, nullptr, /*allow_exceptions=*/false);
    if (!retired.is_discarded()) json["retired"].push_back(retired);
  }
  // Bytes that are not UTF-8 (a CPU's brand) are replaced, not thrown at; what
  // is hashed is what a reader will see.
  json = Json::parse(json.dump(-1, ' ', false, Json::error_handler_t::replace));
  json["integrity"] = {{"algo", "fnv1a64"},
                       {"of", "every member but this one"},
                       {"value", IntegrityOf(json)}};
  return json.dump(1) + "\n";
}

}  // namespace heed
