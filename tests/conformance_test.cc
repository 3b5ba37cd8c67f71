// The conformance cases of the folder HEED_CONFORMANCE_DIR names (sdpa/ and
// onnx/), through the C ABI. Cases that need a feature this version lacks are
// counted and skipped by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/attention_case.h"
#include "tune/npy.h"

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

// The feature that the case needs and heed lacks; empty if none.
std::string MissingFeature(const Json& json) {
  for (const auto& [name, tensor] : json["inputs"].items()) {
    if (name != "Q" && name != "K" && name != "V") return name;
    if (tensor["dtype"] != "float32") return tensor["dtype"];
  }
  for (const auto& [name, tensor] : json["outputs"].items()) {
    if (name != "Y") return "output " + name;
  }
  const Json& attributes = json["attributes"];
  if (Given(attributes, "softcap") &&
      attributes["softcap"].get<double>() != 0) {
    return "softcap";
  }
  return "";
}

// A tensor and how its logical [batch, heads, len, dim] lies in it.
struct Logical {
  NpyTensor tensor;
  int64_t batch, heads, len, dim;
  heed_input input;
};

// Rank 4 is [batch, heads, len, dim]; rank 3 is [batch, len, heads * dim].
void ReadLogical(const fs::path& folder, const Json& described, int64_t heads,
                 Logical* x) {
  const size_t rank = described["shape"].size();
  ASSERT_TRUE(rank == 3 || rank == 4) << rank;
  std::string why;
  const std::string file = described["file"].get<std::string>();
  ASSERT_TRUE(ReadNpy((folder / file).string(), rank, &x->tensor, &why)) << why;
  const std::vector<int64_t>& shape = x->tensor.shape;
  x->batch = shape[0];
  static const float nothing[1] = {0};
  const float* data = x->tensor.data.empty() ? nothing : x->tensor.data.data();
  if (rank == 4) {
    x->heads = shape[1];
    x->len = shape[2];
    x->dim = shape[3];
    x->input = heed_dense_input(data, x->heads, x->len, x->dim);
  } else {
    ASSERT_GT(heads, 0) << "rank 3 needs the number of heads";
    x->heads = heads;
    x->len = shape[1];
    x->dim = shape[2] / heads;
    x->input = {data, shape[1] * shape[2], x->dim, shape[2], 1};
  }
}

// |got - want| allowed at an element: sdpa/README's rule, or the case's own.
double Allowed(const Json& json, bool onnx, double want, double largest) {
  if (onnx) return 2e-6 + 2e-6 * std::fabs(want);
  if (Given(json, "tolerance")) {
    const Json& tolerance = json["tolerance"];
    if (Given(tolerance, "abs")) return tolerance["abs"].get<double>();
    if (Given(tolerance, "rel"))
      return tolerance["rel"].get<double>() * largest;
  }
  return 3e-6 * std::max(1.0, largest);
}

void RunCase(const fs::path& folder, const Json& json) {
  SCOPED_TRACE(folder.filename().string());
  const Json& attributes = json["attributes"];
  const Json& inputs = json["inputs"];
  const int64_t heads_q = IntegerOr(attributes, "q_num_heads", 0);
  const int64_t heads_kv = IntegerOr(attributes, "kv_num_heads", 0);
  Logical q, k, v;
  ASSERT_NO_FATAL_FAILURE(ReadLogical(folder, inputs["Q"], heads_q, &q));
  ASSERT_NO_FATAL_FAILURE(ReadLogical(folder, inputs["K"], heads_kv, &k));
  ASSERT_NO_FATAL_FAILURE(ReadLogical(folder, inputs["V"], heads_kv, &v));

  heed_problem problem =
      MakeProblem(q.batch, q.heads, k.heads, q.len, k.len, q.dim, v.dim);
  // Both operators' causal line without a cache starts at the top left.
  if (IntegerOr(attributes, "is_causal", 0) != 0) {
    problem.causal = HEED_CAUSAL_TOP_LEFT;
  }
  if (Given(attributes, "scale")) {
    problem.scale_mode = HEED_SCALE_VALUE;
    problem.scale = attributes["scale"].get<double>();
  }

  const Json& described = json["outputs"]["Y"];
  NpyTensor want;
  std::string why;
  ASSERT_TRUE(ReadNpy((folder / described["file"].get<std::string>()).string(),
                      described["shape"].size(), &want, &why))
      << why;
  std::vector<float> got(want.data.size() + 1, -1e30f);
  heed_call call;
  heed_call_init(&call);
  call.q = q.input;
  call.k = k.input;
  call.v = v.input;
  call.out = heed_dense_output(got.data(), q.heads, q.len, v.dim);
  if (want.shape.size() == 3) {
    call.out.stride_head = v.dim;
    call.out.stride_token = q.heads * v.dim;
  }
  ASSERT_EQ(heed_attention(&problem, nullptr, &call), HEED_OK)
      << heed_last_error();

  const bool onnx = folder.parent_path().filename() == "onnx";
  double largest = 0;
  for (const float x : want.data) {
    largest = std::max(largest, std::fabs(static_cast<double>(x)));
  }
  for (size_t i = 0; i < want.data.size(); ++i) {
    const double target = want.data[i];
    const bool both_nan = std::isnan(target) && std::isnan(got[i]);
    ASSERT_TRUE(both_nan || std::fabs(got[i] - target) <=
                                Allowed(json, onnx, target, largest))
        << "element " << i << ": got " << got[i] << ", want " << target;
  }
}

TEST(Conformance, EveryCaseWithinThePresentFeaturesAgrees) {
  const char* root = std::getenv("HEED_CONFORMANCE_DIR");
  if (root == nullptr || *root == '\0') {
    GTEST_SKIP() << "HEED_CONFORMANCE_DIR is not set: it names the folder that "
                    "holds sdpa/ and onnx/";
  }
  const std::vector<fs::path> folders = CaseFolders(root);
  ASSERT_FALSE(folders.empty()) << "no case under " << root;
  int run = 0;
  std::map<std::string, std::vector<std::string>> skipped;
  for (const fs::path& folder : folders) {
    std::ifstream file(folder / "case.json");
    const Json json = Json::parse(file);
    const std::string missing = MissingFeature(json);
    if (!missing.empty()) {
      skipped[missing].push_back(folder.filename().string());
      continue;
    }
    RunCase(folder, json);
    ++run;
  }
  std::printf("%d of %zu cases run\n", run, folders.size());
  for (const auto& [feature, names] : skipped) {
    std::printf("skipped for want of %s (%zu):", feature.c_str(), names.size());
    for (const std::string& name : names) std::printf(" %s", name.c_str());
    std::printf("\n");
  }
  EXPECT_GT(run, 0);
}

}  // namespace
}  // namespace heed::test
