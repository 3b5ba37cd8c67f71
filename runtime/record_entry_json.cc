// A record's entries from JSON.
#include <algorithm>
#include <cstdint>

#include "runtime/record_text.h"
#include "runtime/shape_class.h"
#include "runtime/tile_model.h"

namespace heed {
namespace {

bool IsBucket(int64_t value) { return value > 0 && (value & (value - 1)) == 0; }

bool ClassFromJson(const Json& json, const std::string& place, ShapeClass* c,
                   std::string* why) {
  JsonReader reader(json, place, why);
  static const char* const kOps[] = {"prefill", "decode"};
  static const char* const kDtypes[] = {"", "f32", "f16", "bf16"};
  static const char* const kCausal[] = {"none", "top_left", "bottom_right",
                                        "offset"};
  static const char* const kMasks[] = {"none", "bool", "f32", "own"};
  static_assert(HEED_F32 == 1 && HEED_F16 == 2 && HEED_BF16 == 3);
  static_assert(HEED_CAUSAL_TOP_LEFT == 1 && HEED_CAUSAL_BOTTOM_RIGHT == 2 &&
                HEED_CAUSAL_OFFSET == 3);
  static_assert(HEED_MASK_BOOL == 1 && HEED_MASK_F32 == 2 &&
                HEED_MASK_DTYPE == 3);
  int32_t op = 0;
  reader.Choice("op", kOps, &op);
  c->decode = op == 1;
  reader.Choice("dtype", kDtypes, &c->dtype);
  if (reader.ok() && c->dtype == 0) {
    reader.Failed("dtype", "expected one of f32, f16, bf16");
  }
  reader.Integer("dim_qk", 0, kMaxClassSize, &c->dim_qk);
  reader.Integer("dim_v", 0, kMaxClassSize, &c->dim_v);
  reader.Integer("group", 1, kMaxClassSize, &c->group);
  reader.Integer("len_q", 1, kMaxClassSize, &c->len_q);
  reader.Integer("len_k", 1, kMaxClassSize, &c->len_k);
  reader.Choice("causal", kCausal, &c->causal);
  reader.Integer("window", 0, kMaxClassSize, &c->window);
  reader.Choice("mask", kMasks, &c->mask);
  reader.Integer("mask_block_q", 1, kMaxClassSize, &c->mask_block_q);
  reader.Integer("mask_block_k", 1, kMaxClassSize, &c->mask_block_k);
  reader.Bool("softcap", &c->softcap);
  reader.Bool("alibi", &c->alibi);
  reader.Bool("sinks", &c->sinks);
  reader.Bool("ragged", &c->ragged);
  reader.Integer("page_size", 0, kMaxClassSize, &c->page_size);
  reader.Integer("pieces", 0, 2, &c->pieces);
  reader.Integer("threads", 1, 1 << 20, &c->threads);
  const bool buckets = IsBucket(c->len_q) && IsBucket(c->len_k) &&
                       IsBucket(c->mask_block_q) && IsBucket(c->mask_block_k) &&
                       (c->window == 0 || IsBucket(c->window));
  if (reader.ok() && !buckets) {
    reader.Failed("len_q, len_k, window and mask_block",
                  "expected powers of two");
  }
  return reader.ok();
}

// Names a member of `json` that is none of ours; empty if there is none.
std::string UnknownTunable(const Json& json) {
  static const char* const kKnown[] = {
      "target", "row_block", "key_tile",         "pack_k",
      "pack_v", "prefetch",  "tasks_per_worker", "decode_rows"};
  for (const auto& item : json.items()) {
    const auto same = [&item](const char* name) { return item.key() == name; };
    if (std::none_of(std::begin(kKnown), std::end(kKnown), same)) {
      return item.key().substr(0, 40);
    }
  }
  return "";
}

bool ConfigFromJson(const Json& json, const std::string& place,
                    std::string* target, Config* config, std::string* note,
                    std::string* why) {
  if (!TileFromJson(json, place, &config->tile, why)) return false;
  JsonReader reader(json, place, why);
  reader.Text("target", target);
  const auto in_name = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  if (reader.ok() && (target->empty() || target->size() > 32 ||
                      !std::all_of(target->begin(), target->end(), in_name))) {
    reader.Failed("target", "expected a SIMD target's name");
  }
  reader.Integer("tasks_per_worker", 1, kMaxTasksPerWorker,
                 &config->cut.tasks_per_worker);
  reader.Integer("decode_rows", 0, kMaxDecodeRows, &config->cut.decode_rows);
  const std::string unknown = UnknownTunable(json);
  if (!unknown.empty()) *note = "unknown tunable \"" + unknown + "\"";
  return reader.ok();
}

// The interval must hold its median, and gains are ratios of times.
bool GainFromJson(const Json& json, const std::string& place, Gain* gain,
                  std::string* why) {
  JsonReader reader(json, place, why);
  reader.Number("median", &gain->median);
  const Json* interval = reader.Member("ci95");
  if (!reader.ok()) return false;
  const bool pair = interval->is_array() && interval->size() == 2 &&
                    (*interval)[0].is_number() && (*interval)[1].is_number();
  if (pair) {
    gain->low = (*interval)[0].get<double>();
    gain->high = (*interval)[1].get<double>();
  }
  if (!pair || !(gain->low >= 0 && gain->low <= gain->median &&
                 gain->median <= gain->high && gain->high <= 1e9)) {
    reader.Failed("ci95", "expected two numbers around the median");
  }
  return reader.ok();
}

bool GuardsFromJson(const Json& json, const std::string& place,
                    std::vector<Guard>* guards, std::string* why) {
  if (!json.is_array() || json.size() > kMaxRecordGuards) {
    *why = place + ": expected an array of at most " +
           std::to_string(kMaxRecordGuards);
    return false;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string at = place + "[" + std::to_string(i) + "]";
    JsonReader reader(json[i], at, why);
    Guard guard;
    reader.Line("problem", &guard.problem);
    const Json* gain = reader.Member("gain");
    if (!reader.ok() || !GainFromJson(*gain, at + ".gain", &guard.gain, why)) {
      return false;
    }
    guards->push_back(guard);
  }
  return true;
}

}  // namespace

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

bool EntryFromJson(const Json& json, const std::string& place,
                   RecordEntry* entry, std::string* note, std::string* why) {
  JsonReader reader(json, place, why);
  const Json* shape_class = reader.Member("class");
  const Json* config = reader.Member("config");
  const Json* default_config = reader.Member("default");
  const Json* gain = reader.Member("gain");
  const Json* guards = reader.Member("guards");
  if (!reader.ok() ||
      !ClassFromJson(*shape_class, place + ".class", &entry->shape_class,
                     why) ||
      !ConfigFromJson(*config, place + ".config", &entry->target,
                      &entry->config, note, why) ||
      !ConfigFromJson(*default_config, place + ".default",
                      &entry->default_target, &entry->default_config, note,
                      why) ||
      !GainFromJson(*gain, place + ".gain", &entry->gain, why) ||
      !GuardsFromJson(*guards, place + ".guards", &entry->guards, why)) {
    return false;
  }
  static const char* const kDecisions[] = {"adopted", "kept_default",
                                           "quarantined"};
  int32_t decision = 0;
  reader.Choice("decision", kDecisions, &decision);
  entry->decision = static_cast<Decision>(decision);
  reader.Line("problem", &entry->problem);
  reader.Line("reason", &entry->reason);
  reader.Integer("rounds", 0, 1 << 30, &entry->rounds);
  reader.Number("default_us", &entry->default_us);
  reader.Number("tuned_us", &entry->tuned_us);
  reader.Number("pct_peak", &entry->pct_peak);
  reader.Integer("candidates", 0, 1 << 30, &entry->candidates);
  reader.Integer("search_samples", 0, 1 << 30, &entry->search_samples);
  reader.Line("run", &entry->run);
  reader.Line("confirmed", &entry->confirmed);
  return reader.ok();
}

}  // namespace heed
