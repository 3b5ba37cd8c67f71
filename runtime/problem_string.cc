// heed_problem_print() and heed_problem_parse(): the one name of a problem in
// tests, benchmarks, records and on command lines.
//
//   b1_hq32_hkv8_q2048_k2048_d128[_dv64][_causal][_win4095x0][_alignbr]
//   [_cap50][_alibi][_maskbool][_sinks][_ragged][_page16][_scale0.125]_f32
//
// dv is left out when it equals d. The causal line is one of
//   causal     top left, where the corners coincide: q equals k, not ragged
//   causaltl   top left, causalbr bottom right, causaloff the call's offset
// and a window or alibi without one has aligntl, alignbr or alignoff.
//   win<left>x<right>   keys to either side; inf: without limit
//   maskbool[<q>x<k>], maskf32, maskown   bytes[, for blocks], f32, own type
// No scale means 1/sqrt(d).
#include <algorithm>
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

// A window's side: "inf" or digits.
bool ParseSide(std::string_view text, int64_t* keys) {
  *keys = -1;
  return text == "inf" || ParseSize(text, "", keys);
}

heed_status ParseWindow(Tokens* tokens, heed_problem* p) {
  if (!StartsWith(tokens->now(), "win")) return HEED_OK;
  const std::string_view sides = tokens->now().substr(std::strlen("win"));
  const size_t cross = sides.find('x');
  if (cross == std::string_view::npos ||
      !ParseSide(sides.substr(0, cross), &p->window_left) ||
      !ParseSide(sides.substr(cross + 1), &p->window_right)) {
    return tokens->Refuse("win<keys or inf>x<keys or inf>");
  }
  p->window = 1;
  tokens->Advance();
  return HEED_OK;
}

// A token that stands for a number.
struct Word {
  const char* text;
  int32_t value;
};
constexpr Word kAligns[] = {{"aligntl", HEED_ALIGN_TOP_LEFT},
                            {"alignbr", HEED_ALIGN_BOTTOM_RIGHT},
                            {"alignoff", HEED_ALIGN_OFFSET}};
constexpr Word kMasks[] = {{"maskbool", HEED_MASK_BOOL},
                           {"maskf32", HEED_MASK_F32},
                           {"maskown", HEED_MASK_DTYPE}};
constexpr Word kAlibi[] = {{"alibi", 1}};
constexpr Word kSinks[] = {{"sinks", 1}};
constexpr Word kRagged[] = {{"ragged", 1}};

// Takes the token if it is one of the words.
template <size_t kCount>
void ParseWord(const Word (&words)[kCount], Tokens* tokens, int32_t* value) {
  for (const Word& word : words) {
    if (!tokens->at_end() && tokens->now() == word.text) {
      *value = word.value;
      tokens->Advance();
      return;
    }
  }
}

// "<prefix><finite number>". from_chars, because strtod reads the decimal point
// of the locale.
bool ParseNumber(std::string_view token, std::string_view prefix,
                 double* value) {
  token.remove_prefix(prefix.size());
  const char* end = token.data() + token.size();
  const auto result = std::from_chars(token.data(), end, *value);
  return result.ec == std::errc() && result.ptr == end && std::isfinite(*value);
}

// "maskbool<queries>x<keys>", a block of more than one element.
heed_status ParseMaskBlocks(Tokens* tokens, heed_problem* p) {
  const std::string_view token = tokens->now().substr(std::strlen("maskbool"));
  const size_t x = token.find('x');
  int64_t block_q = 0, block_k = 0;
  if (x == std::string_view::npos ||
      !ParseSize(token.substr(0, x), "", &block_q) ||
      !ParseSize(token.substr(x + 1), "", &block_k) || block_q < 1 ||
      block_q > INT32_MAX || block_k < 1 || block_k > INT32_MAX ||
      block_q * block_k == 1) {
    return tokens->Refuse("maskbool, or maskbool<queries>x<keys> of a block");
  }
  p->mask = HEED_MASK_BOOL;
  p->mask_block_q = static_cast<int32_t>(block_q);
  p->mask_block_k = static_cast<int32_t>(block_k);
  tokens->Advance();
  return HEED_OK;
}

// Everything between the window and the scale.
heed_status ParseBias(Tokens* tokens, heed_problem* p) {
  ParseWord(kAligns, tokens, &p->align);
  if (StartsWith(tokens->now(), "cap")) {
    if (!ParseNumber(tokens->now(), "cap", &p->softcap) || !(p->softcap > 0)) {
      return tokens->Refuse("cap<finite number above 0>");
    }
    tokens->Advance();
  }
  ParseWord(kAlibi, tokens, &p->alibi);
  if (StartsWith(tokens->now(), "maskbool") && tokens->now() != "maskbool") {
    const heed_status status = ParseMaskBlocks(tokens, p);
    if (status != HEED_OK) return status;
  } else {
    ParseWord(kMasks, tokens, &p->mask);
  }
  ParseWord(kSinks, tokens, &p->sinks);
  ParseWord(kRagged, tokens, &p->ragged);
  if (StartsWith(tokens->now(), "page")) {
    if (!ParseSize(tokens->now(), "page", &p->page_size) || p->page_size == 0) {
      return tokens->Refuse("page<keys of a page>");
    }
    tokens->Advance();
  }
  return HEED_OK;
}

heed_status ParseScale(Tokens* tokens, heed_problem* p) {
  p->scale_mode = HEED_SCALE_INV_SQRT_DIM;
  if (!StartsWith(tokens->now(), "scale")) return HEED_OK;
  if (!ParseNumber(tokens->now(), "scale", &p->scale)) {
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
      "win<n>x<n>, align.., cap<x>, alibi, mask.., sinks, ragged, page<n>, "
      "scale<x>)");
}

// What one token says of another.
heed_status CheckTogether(std::string_view text, const heed_problem& p) {
  const int size = static_cast<int>(std::min<size_t>(text.size(), 200));
  if (ReadsAlign(p) != (p.align != 0)) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem string: \"%.*s\"; expected aligntl, alignbr or "
                "alignoff with a window or alibi that has no causal line, and "
                "only then",
                size, text.data());
  }
  // ParseCausal() takes "causal" for top left before it sees "ragged".
  if (p.ragged != 0 && text.find("_causal_") != std::string_view::npos) {
    return Fail(HEED_INVALID_ARGUMENT,
                "problem string: \"%.*s\"; expected causaltl or causalbr, "
                "which differ where lengths do",
                size, text.data());
  }
  return HEED_OK;
}

const char* CausalToken(const heed_problem& p) {
  switch (p.causal) {
    case HEED_CAUSAL_TOP_LEFT:
      return p.len_q == p.len_k && p.ragged == 0 ? "_causal" : "_causaltl";
    case HEED_CAUSAL_BOTTOM_RIGHT:
      return "_causalbr";
    case HEED_CAUSAL_OFFSET:
      return "_causaloff";
    default:
      return "";
  }
}

// "_<text>" of the word for `value`; nothing if there is none.
template <size_t kCount>
std::string WordFor(const Word (&words)[kCount], int32_t value) {
  for (const Word& word : words) {
    if (word.value == value) return std::string("_") + word.text;
  }
  return "";
}

std::string SideToString(int64_t keys) {
  return keys == -1 ? "inf" : std::to_string(keys);
}

// 17 digits give the same double back.
std::string NumberToString(double number) {
  char digits[40];
  const auto result = std::to_chars(digits, digits + sizeof digits, number,
                                    std::chars_format::general, 17);
  return std::string(digits, result.ptr);
}

bool IsFlag(int32_t value) { return value == 0 || value == 1; }

// Every field that is printed has a value that can be.
bool IsPrintable(const heed_problem& p) {
  for (int64_t size : {p.batch, p.heads_q, p.heads_kv, p.len_q, p.len_k,
                       p.dim_qk, p.dim_v, p.page_size}) {
    if (size < 0) return false;
  }
  const bool has_scale = p.scale_mode == HEED_SCALE_VALUE;
  const bool has_align =
      p.align >= HEED_ALIGN_TOP_LEFT && p.align <= HEED_ALIGN_OFFSET;
  return DtypeName(p.dtype) != nullptr && p.causal >= HEED_CAUSAL_NONE &&
         p.causal <= HEED_CAUSAL_OFFSET &&
         (has_scale || p.scale_mode == HEED_SCALE_INV_SQRT_DIM) &&
         (!has_scale || std::isfinite(p.scale)) && IsFlag(p.window) &&
         (p.window == 0 || (p.window_left >= -1 && p.window_right >= -1)) &&
         (!ReadsAlign(p) || has_align) && p.softcap >= 0 &&
         std::isfinite(p.softcap) && p.mask >= HEED_MASK_NONE &&
         p.mask <= HEED_MASK_DTYPE && IsFlag(p.alibi) && IsFlag(p.sinks) &&
         IsFlag(p.ragged) && p.mask_block_q >= 0 && p.mask_block_k >= 0 &&
         (p.mask == HEED_MASK_BOOL ||
          (p.mask_block_q <= 1 && p.mask_block_k <= 1));
}

}  // namespace

std::string ToString(const heed_problem& p) {
  if (!IsPrintable(p)) return "";
  std::string text =
      "b" + std::to_string(p.batch) + "_hq" + std::to_string(p.heads_q) +
      "_hkv" + std::to_string(p.heads_kv) + "_q" + std::to_string(p.len_q) +
      "_k" + std::to_string(p.len_k) + "_d" + std::to_string(p.dim_qk);
  if (p.dim_v != p.dim_qk) text += "_dv" + std::to_string(p.dim_v);
  text += CausalToken(p);
  if (p.window != 0) {
    text += "_win" + SideToString(p.window_left) + "x" +
            SideToString(p.window_right);
  }
  if (ReadsAlign(p)) text += WordFor(kAligns, p.align);
  if (p.softcap > 0) text += "_cap" + NumberToString(p.softcap);
  if (p.alibi != 0) text += "_alibi";
  text += WordFor(kMasks, p.mask);
  if (p.mask_block_q > 1 || p.mask_block_k > 1) {
    text += std::to_string(std::max(p.mask_block_q, 1)) + "x" +
            std::to_string(std::max(p.mask_block_k, 1));
  }
  if (p.sinks != 0) text += "_sinks";
  if (p.ragged != 0) text += "_ragged";
  if (p.page_size > 0) text += "_page" + std::to_string(p.page_size);
  if (p.scale_mode == HEED_SCALE_VALUE) {
    text += "_scale" + NumberToString(p.scale);
  }
  return text + "_" + DtypeName(p.dtype);
}

heed_status ParseProblem(std::string_view text, heed_problem* problem) {
  heed_problem parsed;
  heed_problem_init(&parsed);
  Tokens tokens(text);
  heed_status status = ParseSizes(&tokens, &parsed);
  if (status == HEED_OK) status = ParseCausal(&tokens, &parsed);
  if (status == HEED_OK) status = ParseWindow(&tokens, &parsed);
  if (status == HEED_OK) status = ParseBias(&tokens, &parsed);
  if (status == HEED_OK) status = ParseScale(&tokens, &parsed);
  if (status == HEED_OK) status = ParseDtype(&tokens, &parsed);
  if (status == HEED_OK) status = CheckTogether(text, parsed);
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
