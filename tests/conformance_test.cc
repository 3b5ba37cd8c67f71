// The conformance cases of the folder HEED_CONFORMANCE_DIR names (sdpa/ and
// onnx/), through the C ABI on every target and tile. What the two operators
// have and heed has not is done by a small adapter here: tensors of rank 3,
// past and present, masks that broadcast over keys or are short.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tests/report_case.h"
#include "tests/stored_case.h"
#include "tune/npy_header.h"

namespace heed::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<fs::path> CaseFolders(const fs::path& root) {
  std::vector<fs::path> folders;
  for (const char* group : {"sdpa", "onnx"}) {
    if (!fs::is_directory(root / group)) continue;
    for (const auto& item : fs::directory_iterator(root / group)) {
      if (fs::exists(item.path() / "case.json")) folders.push_back(item.path());
    }
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

bool Given(const Json& json, const char* name) {
  return json.contains(name) && !json[name].is_null();
}

int64_t IntegerOr(const Json& json, const char* name, int64_t otherwise) {
  return Given(json, name) ? json[name].get<int64_t>() : otherwise;
}

// A dense tensor of any of the cases' types, as its bytes.
struct Tensor {
  std::string descr;  // "<f4", "<f2", "|b1" or "<i8"
  std::vector<int64_t> shape;
  std::vector<char> bytes;

  size_t count() const { return static_cast<size_t>(NpyElementCount(shape)); }
  template <typename T>
  T At(size_t i) const {
    T x;
    std::memcpy(&x, bytes.data() + i * sizeof(T), sizeof(T));
    return x;
  }
  size_t element_bytes() const {
    return static_cast<size_t>(descr.back() - '0');
  }
  double Value(size_t i) const {
    if (descr == "<f4") return At<float>(i);
    if (descr == "<f2") return ValueOf(HEED_F16, At<uint16_t>(i));
    return At<uint8_t>(i);
  }
};

void Read(const fs::path& folder, const Json& described, Tensor* tensor) {
  std::ifstream file(folder / described["file"].get<std::string>(),
                     std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  NpyHeader header;
  std::string why;
  ASSERT_TRUE(ParseNpyHeader(all, &header, &why)) << why;
  ASSERT_FALSE(header.fortran_order);
  *tensor = {header.descr, header.shape, {}};
  tensor->bytes.assign(all.begin() + header.header_bytes, all.end());
  ASSERT_EQ(tensor->bytes.size(), tensor->count() * tensor->element_bytes());
}

// A tensor as [batch, heads, len, dim]: rank 3 is [batch, len, heads * dim].
Tensor Logical(const Tensor& x, int64_t heads) {
  if (x.shape.size() == 4) return x;
  const int64_t batch = x.shape[0], len = x.shape[1];
  const int64_t dim = x.shape[2] / heads;
  Tensor y = {x.descr, {batch, heads, len, dim}, x.bytes};
  const size_t run = static_cast<size_t>(dim) * x.element_bytes();
  size_t to = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t h = 0; h < heads; ++h) {
      for (int64_t t = 0; t < len; ++t, to += run) {
        const auto from = static_cast<size_t>((b * len + t) * heads + h) * run;
        std::copy_n(x.bytes.begin() + from, run, y.bytes.begin() + to);
      }
    }
  }
  return y;
}

// The tokens of both, one after the other.
Tensor Concatenated(const Tensor& past, const Tensor& x) {
  Tensor y = {x.descr, x.shape, {}};
  y.shape[2] += past.shape[2];
  const int64_t heads = x.shape[0] * x.shape[1];
  for (int64_t head = 0; head < heads; ++head) {
    for (const Tensor* part : {&past, &x}) {
      const size_t run = part->bytes.size() / static_cast<size_t>(heads);
      const auto from = part->bytes.begin() + head * run;
      y.bytes.insert(y.bytes.end(), from, from + run);
    }
  }
  return y;
}

// The mask with an element for each key, and its strides.
struct Mask {
  std::vector<char> bytes;
  int64_t stride_batch, stride_head, stride_token;
};

// Right-aligned broadcasting. `keys` is how many the mask must have: a single
// one is repeated where the operator says so, and missing ones are hidden.
Mask Expanded(const Tensor& x, int64_t keys, bool repeats_key) {
  std::vector<int64_t> shape(4 - x.shape.size(), 1);
  shape.insert(shape.end(), x.shape.begin(), x.shape.end());
  const int64_t given = shape[3];
  const size_t bytes = x.element_bytes();
  const bool repeats = repeats_key && given == 1;
  // False, or -inf of either type.
  const std::string hidden = x.descr == "|b1" ? std::string(1, '\0')
                             : x.descr == "<f2"
                                 ? std::string("\x00\xFC", 2)
                                 : std::string("\0\0\x80\xFF", 4);
  Mask mask;
  const int64_t rows = shape[0] * shape[1] * shape[2];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t key = 0; key < keys; ++key) {
      const int64_t from = row * given + (repeats ? 0 : key);
      const char* element = repeats || key < given
                                ? x.bytes.data() + from * bytes
                                : hidden.data();
      mask.bytes.insert(mask.bytes.end(), element, element + bytes);
    }
  }
  mask.stride_token = shape[2] == 1 ? 0 : keys;
  mask.stride_head = shape[1] == 1 ? 0 : shape[2] * keys;
  mask.stride_batch = shape[0] == 1 ? 0 : shape[1] * shape[2] * keys;
  return mask;
}

const void* DataOf(const std::vector<char>& bytes) {
  static const char nothing[16] = {};
  return bytes.empty() ? nothing : bytes.data();
}

heed_input InputOf(const Tensor& x) {
  return heed_dense_input(DataOf(x.bytes), x.shape[1], x.shape[2], x.shape[3]);
}

// |got - want| allowed at an element: the READMEs' rules, or the case's own.
double Allowed(const Json& json, bool onnx, const Tensor& y, double want,
               double largest) {
  if (onnx) {
    const double unit = y.descr == "<f2" ? 2e-3 : 2e-6;
    return unit + unit * std::fabs(want);
  }
  if (Given(json, "tolerance")) {
    const Json& tolerance = json["tolerance"];
    if (Given(tolerance, "abs")) return tolerance["abs"].get<double>();
    if (Given(tolerance, "rel")) {
      return tolerance["rel"].get<double>() * largest;
    }
  }
  return 3e-6 * std::max(1.0, largest);
}

// One case: what it gives, what it wants, and the call between them.
class ConformanceCase {
 public:
  ConformanceCase(const fs::path& folder, const Json& json)
      : folder_(folder), json_(json) {}

  void Load() {
    const Json& attributes = json_["attributes"];
    const int64_t heads_q = IntegerOr(attributes, "q_num_heads", 0);
    const int64_t heads_kv = IntegerOr(attributes, "kv_num_heads", 0);
    Tensor q, k, v;
    ASSERT_NO_FATAL_FAILURE(Read(folder_, json_["inputs"]["Q"], &q));
    ASSERT_NO_FATAL_FAILURE(Read(folder_, json_["inputs"]["K"], &k));
    ASSERT_NO_FATAL_FAILURE(Read(folder_, json_["inputs"]["V"], &v));
    ASSERT_NO_FATAL_FAILURE(Read(folder_, json_["outputs"]["Y"], &y_));
    if (Given(json_["outputs"], "qk_matmul_output")) {
      ASSERT_NO_FATAL_FAILURE(
          Read(folder_, json_["outputs"]["qk_matmul_output"], &scores_));
    }
    q_ = Logical(q, heads_q);
    k_ = Logical(k, heads_kv);
    v_ = Logical(v, heads_kv);
    int64_t past = 0;
    if (Given(json_["inputs"], "past_key")) {
      ASSERT_NO_FATAL_FAILURE(Append("past_key", &k_, &past));
      ASSERT_NO_FATAL_FAILURE(Append("past_value", &v_, &past));
    }
    problem_ = MakeProblem(q_.shape[0], q_.shape[1], k_.shape[1], q_.shape[2],
                           k_.shape[2], q_.shape[3], v_.shape[3]);
    problem_.dtype = q_.descr == "<f2" ? HEED_F16 : HEED_F32;
    heed_call_init(&call_);
    call_.q = InputOf(q_);
    call_.k = InputOf(k_);
    call_.v = InputOf(v_);
    if (Given(attributes, "scale")) {
      problem_.scale_mode = HEED_SCALE_VALUE;
      problem_.scale = attributes["scale"].get<double>();
    }
    if (Given(attributes, "softcap")) {
      problem_.softcap = attributes["softcap"].get<double>();
    }
    ASSERT_NO_FATAL_FAILURE(TakeLengths());
    if (IntegerOr(attributes, "is_causal", 0) != 0) {
      // Offset: the past, or what the padded cache holds beside the new tokens.
      problem_.causal =
          problem_.ragged != 0 ? HEED_CAUSAL_BOTTOM_RIGHT : HEED_CAUSAL_OFFSET;
      call_.causal_offset = past;
    }
    ASSERT_NO_FATAL_FAILURE(TakeMask());
  }

  void RunOn(const Settings& settings) {
    SCOPED_TRACE(NameOf(settings));
    std::vector<char> got(y_.bytes.size() + 1, '\x7E');
    heed_call call = call_;
    call.out = heed_dense_output(got.data(), problem_.heads_q, problem_.len_q,
                                 problem_.dim_v);
    if (y_.shape.size() == 3) {
      call.out.stride_head = problem_.dim_v;
      call.out.stride_token = problem_.heads_q * problem_.dim_v;
    }
    ASSERT_EQ(RunCall(problem_, call, settings), HEED_OK) << heed_last_error();
    ExpectAgrees({y_.descr, y_.shape, got}, y_);
  }

  bool has_scores() const { return !scores_.shape.empty(); }

  // The operator's qk_matmul_output, if the case has one.
  void ShowScoresOn(const Settings& settings) {
    if (!has_scores()) return;
    SCOPED_TRACE("qk_matmul_output, " + settings.target);
    heed_options options;
    heed_options_init(&options);
    options.target = settings.target.c_str();
    const int64_t mode =
        IntegerOr(json_["attributes"], "qk_matmul_output_mode", 0);
    // Mode 0 is the first stage, and so on.
    const auto stage = static_cast<heed_score_stage>(mode + HEED_SCORES_SCALED);
    std::vector<float> got(scores_.count());
    const heed_output output = heed_dense_output(
        got.data(), problem_.heads_q, problem_.len_q, problem_.len_k);
    ASSERT_EQ(heed_scores(&problem_, &options, &call_, stage, &output), HEED_OK)
        << heed_last_error();
    Tensor result = {"<f4", scores_.shape, {}};
    result.bytes.resize(got.size() * sizeof(float));
    std::memcpy(result.bytes.data(), got.data(), result.bytes.size());
    ExpectAgrees(result, scores_);
  }

 private:
  void ExpectAgrees(const Tensor& got, const Tensor& want) {
    double largest = 0;
    for (size_t i = 0; i < want.count(); ++i) {
      if (std::isinf(want.Value(i))) continue;
      largest = std::max(largest, std::fabs(want.Value(i)));
    }
    const bool onnx = folder_.parent_path().filename() == "onnx";
    for (size_t i = 0; i < want.count(); ++i) {
      const double x = got.Value(i), y = want.Value(i);
      const bool same = x == y || (std::isnan(x) && std::isnan(y));
      ASSERT_TRUE(same ||
                  std::fabs(x - y) <= Allowed(json_, onnx, want, y, largest))
          << "element " << i << ": got " << x << ", want " << y;
    }
  }

  // Puts the past before k or v, which then is the case's present.
  void Append(const std::string& past_name, Tensor* x, int64_t* past_len) {
    Tensor past;
    ASSERT_NO_FATAL_FAILURE(Read(folder_, json_["inputs"][past_name], &past));
    *past_len = past.shape[2];
    *x = Concatenated(past, *x);
    const std::string present_name = "present" + past_name.substr(4);
    if (!Given(json_["outputs"], present_name.c_str())) return;
    Tensor present;
    ASSERT_NO_FATAL_FAILURE(
        Read(folder_, json_["outputs"][present_name], &present));
    ASSERT_EQ(x->shape, present.shape);
    ASSERT_EQ(x->bytes, present.bytes) << present_name;
  }

  void TakeLengths() {
    if (!Given(json_["inputs"], "nonpad_kv_seqlen")) return;
    Tensor lengths;
    ASSERT_NO_FATAL_FAILURE(
        Read(folder_, json_["inputs"]["nonpad_kv_seqlen"], &lengths));
    for (size_t i = 0; i < lengths.count(); ++i) {
      seqused_k_.push_back(static_cast<int32_t>(lengths.At<int64_t>(i)));
    }
    problem_.ragged = 1;
    call_.seqused_k = seqused_k_.data();
  }

  void TakeMask() {
    if (!Given(json_["inputs"], "attn_mask")) return;
    Tensor mask;
    ASSERT_NO_FATAL_FAILURE(Read(folder_, json_["inputs"]["attn_mask"], &mask));
    mask_ = Expanded(mask, problem_.len_k, json_["op"] == "SDPA");
    problem_.mask = mask.descr == "|b1"   ? HEED_MASK_BOOL
                    : mask.descr == "<f4" ? HEED_MASK_F32
                                          : HEED_MASK_DTYPE;
    call_.mask = {DataOf(mask_.bytes), mask_.stride_batch, mask_.stride_head,
                  mask_.stride_token, 1};
  }

  fs::path folder_;
  const Json& json_;
  Tensor q_, k_, v_, y_, scores_;
  Mask mask_;
  std::vector<int32_t> seqused_k_;
  heed_problem problem_;
  heed_call call_;
};

TEST(Conformance, EveryCaseAgreesOnEveryTargetAndTile) {
  const char* root = std::getenv("HEED_CONFORMANCE_DIR");
  if (root == nullptr || *root == '\0') {
    GTEST_SKIP() << "HEED_CONFORMANCE_DIR is not set: it names the folder that "
                    "holds sdpa/ and onnx/";
  }
  const std::vector<fs::path> folders = CaseFolders(root);
  ASSERT_FALSE(folders.empty()) << "no case under " << root;
  int with_scores = 0;
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    std::ifstream file(folder / "case.json");
    const Json json = Json::parse(file);
    ConformanceCase c(folder, json);
    ASSERT_NO_FATAL_FAILURE(c.Load());
    if (c.has_scores()) ++with_scores;
    for (const Settings& settings : EveryKernel()) {
      c.RunOn(settings);
      c.ShowScoresOn(settings);
      if (::testing::Test::HasFailure()) break;
    }
  }
  std::printf("%zu cases run, %d of them with qk_matmul_output\n",
              folders.size(), with_scores);
}

}  // namespace
}  // namespace heed::test
