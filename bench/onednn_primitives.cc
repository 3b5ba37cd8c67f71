// Attention as three or four of oneDNN's primitives, each over all heads at
// once: matmul, the causal mask, softmax in place, matmul. The scores are in
// memory as a whole.

#include <cmath>
#include <cstring>
#include <unordered_map>

#include "bench/onednn_attention.h"

namespace heed {
namespace {

using Dims = dnnl::memory::dims;
using Layout = dnnl::memory::desc;
using Type = dnnl::memory::data_type;
using Arguments = std::unordered_map<int, dnnl::memory>;

constexpr int64_t kMostScoreBytes = int64_t{2} << 30;

// oneDNN 3 took the descriptors of operations away, and output scales.
#if DNNL_VERSION_MAJOR >= 3
template <typename Primitive, typename... Layouts>
auto Describe(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
              const Layouts&... layouts) {
  return typename Primitive::primitive_desc(engine, layouts..., attr);
}

auto DescribeMask(const dnnl::engine& engine, const Layout& scores,
                  const Layout& mask) {
  return dnnl::binary::primitive_desc(engine, dnnl::algorithm::binary_add,
                                      scores, mask, scores);
}

auto DescribeSoftmax(const dnnl::engine& engine, const Layout& scores,
                     const Layout& weights) {
  return dnnl::softmax_forward::primitive_desc(
      engine, dnnl::prop_kind::forward_inference,
      dnnl::algorithm::softmax_accurate, scores, weights, 3);
}

void Scale(float, dnnl::primitive_attr* attr) {
  attr->set_scales_mask(DNNL_ARG_WEIGHTS, 0);
}

void AddScale(float scale, const dnnl::engine& engine, Arguments* arguments) {
  dnnl::memory factor(Layout({1}, Type::f32, dnnl::memory::format_tag::a),
                      engine);
  std::memcpy(factor.get_data_handle(), &scale, sizeof scale);
  arguments->insert({DNNL_ARG_ATTR_SCALES | DNNL_ARG_WEIGHTS, factor});
}
#else
template <typename Primitive, typename... Layouts>
auto Describe(const dnnl::engine& engine, const dnnl::primitive_attr& attr,
              const Layouts&... layouts) {
  return typename Primitive::primitive_desc({layouts...}, attr, engine);
}

auto DescribeMask(const dnnl::engine& engine, const Layout& scores,
                  const Layout& mask) {
  return dnnl::binary::primitive_desc(
      {dnnl::algorithm::binary_add, scores, mask, scores}, engine);
}

auto DescribeSoftmax(const dnnl::engine& engine, const Layout& scores,
                     const Layout& weights) {
  return dnnl::softmax_v2_forward::primitive_desc(
      {dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate,
       scores, weights, 3},
      engine);
}

void Scale(float scale, dnnl::primitive_attr* attr) {
  attr->set_output_scales(0, {scale});
}

void AddScale(float, const dnnl::engine&, Arguments*) {}
#endif

Type TypeOf(const heed_problem& p) {
  return p.dtype == HEED_F32   ? Type::f32
         : p.dtype == HEED_F16 ? Type::f16
                               : Type::bf16;
}

Layout Dense(const Dims& dims, Type type) {
  return Layout(dims, type, dnnl::memory::format_tag::abcd);
}

class Primitives : public OneDnnAttention {
 public:
  explicit Primitives(const heed_problem& p) {
    // The heads of a group share k and v by broadcasting. Where no mask tells
    // their rows apart they are rows of one matrix instead, a larger product.
    const bool causal = p.causal != HEED_CAUSAL_NONE;
    const int64_t group = p.heads_q / p.heads_kv, n = p.batch * p.heads_kv;
    const int64_t heads = causal ? group : 1;
    const int64_t rows = causal ? p.len_q : group * p.len_q;
    const int64_t keys = p.len_k;
    if (n * heads * rows * keys * 4 > kMostScoreBytes) {
      throw Refused("its scores would take more than 2 GiB");
    }
    const Type type = TypeOf(p);
    const Layout scores = Dense({n, heads, rows, keys}, Type::f32);
    const Layout weights = Dense({n, heads, rows, keys}, type);
    // K as it lies, [keys, dim_qk], is the transpose of what is asked for.
    const Layout k({n, 1, p.dim_qk, keys}, type,
                   {keys * p.dim_qk, keys * p.dim_qk, 1, p.dim_qk});
    const Layout v = Dense({n, 1, keys, p.dim_v}, type);
    const Layout q = Dense({n, heads, rows, p.dim_qk}, type);
    const Layout out = Dense({n, heads, rows, p.dim_v}, type);
    const Layout mask = Dense({1, 1, p.len_q, keys}, Type::f32);

    const dnnl::engine& engine = cpu_.engine;
    q_ = dnnl::memory(q, engine, nullptr);
    k_ = dnnl::memory(k, engine, nullptr);
    v_ = dnnl::memory(v, engine, nullptr);
    out_ = dnnl::memory(out, engine, nullptr);
    scores_ = dnnl::memory(scores, engine);
    weights_ = type == Type::f32 ? scores_ : dnnl::memory(weights, engine);

    const float scale = 1 / std::sqrt(static_cast<float>(p.dim_qk));
    dnnl::primitive_attr scaled;
    Scale(scale, &scaled);
    Arguments first = {
        {DNNL_ARG_SRC, q_}, {DNNL_ARG_WEIGHTS, k_}, {DNNL_ARG_DST, scores_}};
    AddScale(scale, engine, &first);
    const auto product = Describe<dnnl::matmul>(engine, scaled, q, k, scores);
    if (causal) {
      AppendMasked(product, scaled, CausalMask(p), mask, first);
    } else {
      Append(dnnl::matmul(product), first);
    }
    AppendSoftmax(DescribeSoftmax(engine, scores, weights));
    Append(dnnl::matmul(Describe<dnnl::matmul>(engine, dnnl::primitive_attr(),
                                               weights, v, out)),
           {{DNNL_ARG_SRC, weights_},
            {DNNL_ARG_WEIGHTS, v_},
            {DNNL_ARG_DST, out_}});
  }

  void Run(const heed_call& call) override {
    // oneDNN's handles are not const; it only reads these.
    q_.set_data_handle(const_cast<void*>(call.q.data));
    k_.set_data_handle(const_cast<void*>(call.k.data));
    v_.set_data_handle(const_cast<void*>(call.v.data));
    out_.set_data_handle(call.out.data);
    for (const auto& [primitive, arguments] : steps_) {
      primitive.execute(cpu_.stream, arguments);
    }
    cpu_.stream.wait();
  }

 private:
  void Append(const dnnl::primitive& primitive, const Arguments& arguments) {
    steps_.emplace_back(primitive, arguments);
  }

  // The product of scores and the mask's addition to them, in one if oneDNN
  // can. 2.6 has only its reference for a product with a mask that all heads
  // share, a thousand times slower than product and addition apart.
  void AppendMasked(const dnnl::matmul::primitive_desc& product,
                    const dnnl::primitive_attr& scaled,
                    const std::vector<float>& values, const Layout& mask,
                    Arguments arguments) {
    dnnl::memory added(mask, cpu_.engine);
    std::memcpy(added.get_data_handle(), values.data(),
                values.size() * sizeof(float));
    dnnl::post_ops add;
    add.append_binary(dnnl::algorithm::binary_add, mask);
    dnnl::primitive_attr masked = scaled;
    masked.set_post_ops(add);
    const Layout scores = scores_.get_desc();
    const auto fused = Describe<dnnl::matmul>(
        cpu_.engine, masked, q_.get_desc(), k_.get_desc(), scores);
    if (std::strncmp(fused.impl_info_str(), "ref", 3) != 0) {
      arguments.insert(
          {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, added});
      Append(dnnl::matmul(fused), arguments);
      return;
    }
    Append(dnnl::matmul(product), arguments);
    Append(dnnl::binary(DescribeMask(cpu_.engine, scores, mask)),
           {{DNNL_ARG_SRC_0, scores_},
            {DNNL_ARG_SRC_1, added},
            {DNNL_ARG_DST, scores_}});
  }

  template <typename Description>
  void AppendSoftmax(const Description& description) {
    Append(dnnl::primitive(description.get()),
           {{DNNL_ARG_SRC, scores_}, {DNNL_ARG_DST, weights_}});
  }

  OneDnnCpu cpu_;
  dnnl::memory q_, k_, v_, out_, scores_, weights_;
  std::vector<std::pair<dnnl::primitive, Arguments>> steps_;
};

}  // namespace

std::unique_ptr<OneDnnAttention> MakeOneDnnPrimitives(const heed_problem& p) {
  return std::make_unique<Primitives>(p);
}

}  // namespace heed
