// heed_problem_print() and heed_problem_parse(): the one name of a problem in
// tests, benchmarks, records and on command lines.
//
//   b1_hq32_hkv8_q2048_k2048_d128[_dv64][_causal][_scale0.125]_f32
//
// dv is left out when it equals d. The mask is one of
//   causal     either corner, which coincide when q equals k; only then
//   causaltl   top left, causalbr bottom right, causaloff the call's offset
// No scale means 1/sqrt(d).
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "runtime/error.h"
#include "runtime/problem.h"
#include "runtime/snprint.h"

namespace heed {
namespace {

// Takes a problem string apart, token by token from the left.
class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) { Advance(); }

  std::string_view now() const { return now_; }
  bool at_end() const { return at_end_; }

  void Advance() {
    at_end_ = exhausted_;
    const size_t bar = rest_.find('_');
    now_ = rest_.substr(0, bar);
    exhausted_ = bar == std::string_view::npos;
    rest_ = exhausted_ ? std::string_view() : rest_.substr(bar + 1);
  }

  // The current token, printed whole, for a message.
  heed_status Refuse(const char* expected) const {
    if (at_end_) {
      return Fail(HEED_INVALID_ARGUMENT,
                  "problem string: it ends early; expected %s", expected);
    }
    return Fail(HEED_INVALID_ARGUMENT,
                "problem string: token \"%.*s\"; expected %s",
                static_cast<int>(std::min<size_t>(now_.size(), 60)),
                now_.data(), expected);
  }

 private:
  std::string_view rest_, now_;
  bool at_end_ = false, exhausted_ = false;
};

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

// "<prefix><digits>"
bool ParseSize(std::string_view token, std::string_view prefix,
               int64_t* value) {
  if (!StartsWith(token, prefix)) return false;
  token.remove_prefix(prefix.size());
  if (token.empty() || token[0] < '0' || token[0] > '9') return false;
  const char* end = token.data() + token.size();
  const auto result = std::from_chars(token.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end;
}

heed_status ParseSizes(Tokens* tokens, heed_problem* p) {
  const struct {
    const char* prefix;
    const char* expected;
    int64_t* value;
  } sizes[] = {{"b", "b<batch>", &p->batch},
               {"hq", "hq<query heads>", &p->heads_q},
               {"hkv", "hkv<kv heads>", &p->heads_kv},
               {"q", "q<query tokens>", &p->len_q},
               {"k", "k<key tokens>", &p->len_k},
               {"d", "d<head width>", &p->dim_qk}};
  for (const auto& size : sizes) {
    if (tokens->at_end() ||
        !ParseSize(tokens->now(), size.prefix, size.value)) {
      return tokens->Refuse(size.expected);
    }
    tokens->Advance();
  }
  p->dim_v = p->dim_qk;
  if (StartsWith(tokens->now(), "dv")) {
    if (!ParseSize(tokens->now(), "dv", &p->dim_v)) {
      return tokens->Refuse("dv<head width of v>");
    }
    tokens->Advance();
  }
  return HEED_OK;
}

heed_status ParseCausal(Tokens* tokens, heed_problem* p) {
  const std::string_view token = tokens->now();
  if (!StartsWith(token, "causal")) return HEED_OK;
  if (token == "causaltl") {
    p->causal = HEED_CAUSAL_TOP_LEFT;
  } else if (token == "causalbr") {
    p->causal = HEED_CAUSAL_BOTTOM_RIGHT;
  } else if (token == "causaloff") {
    p->causal = HEED_CAUSAL_OFFSET;
  } else if (token != "causal") {
    return tokens->Refuse("causal, causaltl, causalbr or causaloff");
  } else if (p->len_q != p->len_k) {
    return tokens->Refuse(
        "causaltl (top left) or causalbr (bottom right), which differ because "
        "q and k do");
  } else {
    p->causal = HEED_CAUSAL_TOP_LEFT;
  }
  tokens->Advance();
  return HEED_OK;
}

heed_status ParseScale(Tokens* tokens, heed_problem* p) {
  p->scale_mode = HEED_SCALE_INV_SQRT_DIM;
  std::string_view number = tokens->now();
  if (!StartsWith(number, "scale")) return HEED_OK;
  number.remove_prefix(std::strlen("scale"));
  const char* end = number.data() + number.size();
  // from_chars, because strtod reads the decimal point of the locale.
  const auto result = std::from_chars(number.data(), end, p->scale);
  if (result.ec != std::errc() || result.ptr != end ||
      !std::isfinite(p->scale)) {
    return tokens->Refuse("scale<finite number>");
  }
  p->scale_mode = HEED_SCALE_VALUE;
  tokens->Advance();
  return HEED_OK;
}

heed_status ParseDtype(Tokens* tokens, heed_problem* p) {
  for (int32_t dtype : {HEED_F32, HEED_F16, HEED_BF16}) {
    if (!tokens->at_end() && tokens->now() == DtypeName(dtype)) {
      p->dtype = dtype;
      tokens->Advance();
      if (tokens->at_end()) return HEED_OK;
      return tokens->Refuse("nothing after the type");
    }
  }
  return tokens->Refuse(
      "f32, f16 or bf16 (before it, in this order: dv<n>, causal.., "
      "scale<x>)");
}

const char* CausalToken(const heed_problem& p) {
  switch (p.causal) {
    case HEED_CAUSAL_TOP_LEFT:
      return p.len_q == p.len_k ? "_causal" : "_causaltl";
    case HEED_CAUSAL_BOTTOM_RIGHT:
      return "_causalbr";
    case HEED_CAUSAL_OFFSET:
      return "_causaloff";
    default:
      return "";
  }
}

}  // namespace

std::string ToString(const heed_problem& p) {
  for (int64_t size :
       {p.batch, p.heads_q, p.heads_kv, p.len_q, p.len_k, p.dim_qk, p.dim_v}) {
    if (size < 0) return "";
  }
  const char* dtype = DtypeName(p.dtype);
  const bool has_scale = p.scale_mode == HEED_SCALE_VALUE;
  if (dtype == nullptr || p.causal < HEED_CAUSAL_NONE ||
      p.causal > HEED_CAUSAL_OFFSET ||
      (!has_scale && p.scale_mode != HEED_SCALE_INV_SQRT_DIM) ||
      (has_scale && !std::isfinite(p.scale))) {
    return "";
  }
  std::string text =
      "b" + std::to_string(p.batch) + "_hq" + std::to_string(p.heads_q) +
      "_hkv" + std::to_string(p.heads_kv) + "_q" + std::to_string(p.len_q) +
      "_k" + std::to_string(p.len_k) + "_d" + std::to_string(p.dim_qk);
  if (p.dim_v != p.dim_qk) text += "_dv" + std::to_string(p.dim_v);
  text += CausalToken(p);
  if (has_scale) {
    // 17 digits give the same double back.
    char digits[40];
    const auto result = std::to_chars(digits, digits + sizeof digits, p.scale,
                                      std::chars_format::general, 17);
    text += "_scale";
    text.append(digits, result.ptr);
  }
  return text + "_" + dtype;
}

heed_status ParseProblem(std::string_view text, heed_problem* problem) {
  heed_problem parsed;
  heed_problem_init(&parsed);
  Tokens tokens(text);
  heed_status status = ParseSizes(&tokens, &parsed);
  if (status == HEED_OK) status = ParseCausal(&tokens, &parsed);
  if (status == HEED_OK) status = ParseScale(&tokens, &parsed);
  if (status == HEED_OK) status = ParseDtype(&tokens, &parsed);
  if (status == HEED_OK) *problem = parsed;
  return status;
}

}  // namespace heed

extern "C" {

size_t heed_problem_print(const heed_problem* problem, char* text,
                          size_t size) {
  return heed::PrintNoThrow(text, size, [&] {
    return problem == nullptr ? std::string() : heed::ToString(*problem);
  });
}

heed_status heed_problem_parse(const char* text, heed_problem* problem) {
  if (text == nullptr || problem == nullptr) {
    return heed::Fail(HEED_INVALID_ARGUMENT, "%s is NULL; expected an address",
                      text == nullptr ? "text" : "problem");
  }
  return heed::ParseProblem(text, problem);
}

}  // extern "C"
