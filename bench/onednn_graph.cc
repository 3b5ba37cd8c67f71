// Attention as one partition of oneDNN's graph, which its SDPA kernels take:
// matmul, multiply, add of the causal mask, softmax, matmul.

#include <cmath>

#include "bench/onednn_attention.h"

#if DNNL_VERSION_MAJOR * 100 + DNNL_VERSION_MINOR >= 306

#include <oneapi/dnnl/dnnl_graph.hpp>

namespace heed {
namespace {

namespace graph = dnnl::graph;
using Dims = graph::logical_tensor::dims;
using Tensor = graph::logical_tensor;
using Type = Tensor::data_type;
using Operation = graph::op;

enum TensorId : size_t {
  kQ,
  kK,
  kScores,
  kScale,
  kScaled,
  kMask,
  kMasked,
  kWeights,
  kV,
  kOut
};

Tensor Strided(size_t id, Type type, const Dims& dims) {
  return Tensor(id, type, dims, Tensor::layout_type::strided);
}

class Graph : public OneDnnAttention {
 public:
  explicit Graph(const heed_problem& p)
      : scale_(1 / std::sqrt(static_cast<float>(p.dim_qk))) {
    const bool causal = p.causal != HEED_CAUSAL_NONE;
    if (causal) mask_ = CausalMask(p);
    const Type type = p.dtype == HEED_F32   ? Type::f32
                      : p.dtype == HEED_F16 ? Type::f16
                                            : Type::bf16;
    // Grouped heads have an axis of their own, along which k and v broadcast.
    const int64_t group = p.heads_q / p.heads_kv;
    const auto of_queries = [&](int64_t rows, int64_t columns) {
      return group == 1 ? Dims{p.batch, p.heads_kv, rows, columns}
                        : Dims{p.batch, p.heads_kv, group, rows, columns};
    };
    const auto of_keys = [&](int64_t columns) {
      return group == 1 ? Dims{p.batch, p.heads_kv, p.len_k, columns}
                        : Dims{p.batch, p.heads_kv, 1, p.len_k, columns};
    };
    const Dims score_dims = of_queries(p.len_q, p.len_k);
    Dims mask_dims(score_dims.size(), 1);
    mask_dims[mask_dims.size() - 2] = p.len_q;
    mask_dims[mask_dims.size() - 1] = p.len_k;
    const Tensor q = Strided(kQ, type, of_queries(p.len_q, p.dim_qk));
    const Tensor k = Strided(kK, type, of_keys(p.dim_qk));
    const Tensor v = Strided(kV, type, of_keys(p.dim_v));
    const Tensor out = Strided(kOut, type, of_queries(p.len_q, p.dim_v));
    const Tensor scores = Strided(kScores, Type::f32, score_dims);
    const Tensor scale = Strided(kScale, Type::f32, {1});
    const Tensor scaled = Strided(kScaled, Type::f32, score_dims);
    const Tensor mask = Strided(kMask, Type::f32, mask_dims);
    const Tensor masked = Strided(kMasked, Type::f32, score_dims);
    const Tensor weights = Strided(kWeights, type, score_dims);

    using Kind = Operation::kind;
    Operation multiply(0, Kind::MatMul, {q, k}, {scores}, "scores");
    multiply.set_attr<bool>(Operation::attr::transpose_b, true);
    Operation softmax(3, Kind::SoftMax, {causal ? masked : scaled}, {weights},
                      "softmax");
    softmax.set_attr<int64_t>(Operation::attr::axis, -1);
    graph::graph whole(dnnl::engine::kind::cpu);
    whole.add_op(multiply);
    whole.add_op(
        Operation(1, Kind::Multiply, {scores, scale}, {scaled}, "scale"));
    if (causal) {
      whole.add_op(Operation(2, Kind::Add, {scaled, mask}, {masked}, "mask"));
    }
    whole.add_op(softmax);
    whole.add_op(Operation(4, Kind::MatMul, {weights, v}, {out}, "blend"));
    whole.finalize();
    const std::vector<graph::partition> partitions = whole.get_partitions();
    if (partitions.size() != 1 || !partitions[0].is_supported()) {
      throw Refused("oneDNN has no one partition for it");
    }
    const std::vector<Tensor> inputs = partitions[0].get_input_ports();
    compiled_ = partitions[0].compile(inputs, {out}, cpu_.engine);
    for (const Tensor& input : inputs) {
      inputs_.emplace_back(input, cpu_.engine, nullptr);
      ids_.push_back(input.get_id());
    }
    outputs_.emplace_back(out, cpu_.engine, nullptr);
  }

  void Run(const heed_call& call) override {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      // oneDNN's handles are not const; it only reads these.
      inputs_[i].set_data_handle(const_cast<void*>(
          ids_[i] == kQ       ? call.q.data
          : ids_[i] == kK     ? call.k.data
          : ids_[i] == kV     ? call.v.data
          : ids_[i] == kScale ? &scale_
                              : static_cast<const void*>(mask_.data())));
    }
    outputs_[0].set_data_handle(call.out.data);
    compiled_.execute(cpu_.stream, inputs_, outputs_);
    cpu_.stream.wait();
  }

 private:
  OneDnnCpu cpu_;
  float scale_;
  std::vector<float> mask_;
  graph::compiled_partition compiled_;
  std::vector<graph::tensor> inputs_, outputs_;
  std::vector<size_t> ids_;
};

}  // namespace

std::unique_ptr<OneDnnAttention> MakeOneDnnGraph(const heed_problem& p) {
  return std::make_unique<Graph>(p);
}

}  // namespace heed

#else

namespace heed {

std::unique_ptr<OneDnnAttention> MakeOneDnnGraph(const heed_problem&) {
  throw Refused("oneDNN has it since 3.6");
}

}  // namespace heed

#endif
