#include "tune/model_config.h"

#include <cmath>

#include "tune/printable.h"
#include "tune/strict_json.h"

namespace heed {
namespace {

constexpr int kConfigDepth = 32;
constexpr int64_t kMaxSize = int64_t{1} << 32;

// Reads members of one JSON object that may be missing, or null, which is the
// same. The first that is wrong fails the whole.
class OptionalReader {
 public:
  OptionalReader(const StrictJson& object, std::string place, std::string* why)
      : object_(object), place_(std::move(place)), why_(why) {
    if (!object.is_object()) Fail("", object, "expected an object");
  }

  bool ok() const { return ok_; }

  // The member, or null if it is not there or something failed before.
  const StrictJson* Member(const char* name) {
    if (!ok_) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }

  // 1 to 2^32.
  void Size(const char* name, int64_t* value) {
    const StrictJson* member = Member(name);
    if (member == nullptr) return;
    if (!IsCount(*member, value) || *value < 1 || *value > kMaxSize) {
      Fail(name, *member, "expected an integer from 1 to 2^32");
    }
  }

  void Layer(const char* name, int64_t* value) {
    const StrictJson* member = Member(name);
    if (member == nullptr) return;
    if (!IsCount(*member, value)) {
      Fail(name, *member, "expected an integer of at least 0");
    }
  }

  // A finite number of at least 0, or above it.
  bool Number(const char* name, bool above_0, double* value) {
    const StrictJson* member = Member(name);
    if (member == nullptr) return false;
    const double number = member->is_number() ? member->get<double>() : NAN;
    if (!std::isfinite(number) || number < 0 || (above_0 && number == 0)) {
      Fail(name, *member,
           above_0 ? "expected a finite number above 0"
                   : "expected a finite number of at least 0");
      return false;
    }
    *value = number;
    return true;
  }

  void Bool(const char* name, bool* value) {
    const StrictJson* member = Member(name);
    if (member == nullptr) return;
    if (!member->is_boolean()) {
      return Fail(name, *member, "expected true or false");
    }
    *value = member->get<bool>();
  }

  void Text(const char* name, std::string* value) {
    const StrictJson* member = Member(name);
    if (member == nullptr) return;
    if (!member->is_string()) return Fail(name, *member, "expected a string");
    *value = member->get<std::string>();
  }

  void Fail(const std::string& name, const StrictJson& value,
            const std::string& expected) {
    const std::string both =
        place_ + (place_.empty() || name.empty() ? "" : ".") + name;
    if (ok_) {
      *why_ = both + (both.empty() ? "" : " is ") +
              Printable(value.dump(-1, ' ', true)) + "; " + expected;
    }
    ok_ = false;
  }

 private:
  const StrictJson& object_;
  const std::string place_;
  std::string* why_;
  bool ok_ = true;
};

// rope_scaling, or what newer configurations call rope_parameters.
bool ReadRope(const StrictJson& json, const std::string& place,
              ModelConfig* config, std::string* why) {
  OptionalReader rope(json, place, why);
  rope.Number("rope_theta", true, &config->rope_theta);
  std::string type = "default";
  rope.Text("type", &type);  // its name until 2024
  rope.Text("rope_type", &type);
  if (!rope.ok() || type == "default") return rope.ok();
  if (type != "linear" && type != "llama3") {
    rope.Fail("rope_type", type, "expected default, linear or llama3");
    return false;
  }
  // That of its members which must be there.
  const auto demand = [&](const char* name, double* value) {
    if (!rope.Number(name, true, value) && rope.ok()) {
      rope.Fail(name, nullptr, "expected a finite number above 0");
    }
  };
  demand("factor", &config->rope_factor);
  if (type == "linear") {
    config->rope_scaling = HEED_ROPE_SCALING_LINEAR;
    return rope.ok();
  }
  config->rope_scaling = HEED_ROPE_SCALING_LLAMA3;
  demand("low_freq_factor", &config->rope_low_freq_factor);
  demand("high_freq_factor", &config->rope_high_freq_factor);
  rope.Size("original_max_position_embeddings", &config->rope_original_len);
  if (rope.ok() && config->rope_original_len == 0) {
    rope.Fail("original_max_position_embeddings", nullptr,
              "expected an integer of at least 1");
  }
  if (rope.ok() &&
      !(config->rope_high_freq_factor > config->rope_low_freq_factor)) {
    rope.Fail("high_freq_factor", config->rope_high_freq_factor,
              "expected more than low_freq_factor");
  }
  return rope.ok();
}

void ReadWindow(OptionalReader* reader, ModelConfig* config) {
  int64_t window = 0, first_layer = 0;
  // Mistral's is used where it is given, Qwen2's if it is asked for. Llama has
  // none.
  bool is_used =
      config->model_type == "mistral" || config->model_type == "mixtral";
  reader->Size("sliding_window", &window);
  reader->Bool("use_sliding_window", &is_used);
  reader->Layer("max_window_layers", &first_layer);
  if (!is_used) return;
  config->sliding_window = window;
  config->window_layer = first_layer;
}

}  // namespace

bool ParseModelConfig(const std::string& text, ModelConfig* config,
                      std::string* why) {
  *config = ModelConfig();
  StrictJson json;
  if (!ParseStrictJson(text.data(), text.size(), kConfigDepth, &json, why)) {
    return false;
  }
  OptionalReader reader(json, "", why);
  reader.Text("model_type", &config->model_type);
  reader.Size("n_embd", &config->d_model);
  reader.Size("hidden_size", &config->d_model);
  reader.Size("n_head", &config->heads_q);
  reader.Size("num_attention_heads", &config->heads_q);
  reader.Size("num_key_value_heads", &config->heads_kv);
  reader.Size("head_dim", &config->head_dim);
  for (const char* name : {"layer_norm_epsilon", "rms_norm_eps"}) {
    double eps;
    if (reader.Number(name, false, &eps)) config->norm_eps = eps;
  }
  reader.Bool("scale_attn_weights", &config->scale_attn_weights);
  reader.Bool("scale_attn_by_inverse_layer_idx",
              &config->scale_attn_by_inverse_layer_idx);
  reader.Number("rope_theta", true, &config->rope_theta);
  if (reader.Number("partial_rotary_factor", true, &config->rope_share) &&
      config->rope_share > 1) {
    reader.Fail("partial_rotary_factor", config->rope_share,
                "expected at most 1");
  }
  ReadWindow(&reader, config);
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    const StrictJson* rope = reader.Member(name);
    if (rope != nullptr && !ReadRope(*rope, name, config, why)) return false;
  }
  return reader.ok();
}

}  // namespace heed
