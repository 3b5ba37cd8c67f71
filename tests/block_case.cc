#include "tests/block_case.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tests/special_values.h"
#include "tests/stored_case.h"

namespace heed::test {
namespace {

// Rounds x to the type and writes it as element `index`.
void Put(int32_t dtype, int64_t index, float* x, std::vector<char>* bytes) {
  if (dtype == HEED_F32) {
    std::memcpy(bytes->data() + 4 * index, x, 4);
    return;
  }
  const uint16_t bits = NearestTo(dtype, *x);
  *x = ValueOf(dtype, bits);
  std::memcpy(bytes->data() + 2 * index, &bits, 2);
}

heed_matrix MatrixOf(const StoredMatrix& matrix) {
  heed_matrix m{};
  m.data = matrix.bytes.empty() ? nullptr : matrix.bytes.data();
  m.dtype = matrix.dtype;
  m.layout = matrix.layout;
  m.stride = matrix.stride;
  m.bias.data = matrix.bias_bytes.empty() ? nullptr : matrix.bias_bytes.data();
  m.bias.dtype = matrix.bias_dtype;
  return m;
}

heed_vector VectorOf(const std::vector<float>& values) {
  return {values.empty() ? nullptr : values.data(), HEED_F32, 0};
}

std::string FirstDifference(const char* name, const std::vector<float>& got,
                            const std::vector<float>& want) {
  if (got.size() != want.size()) {
    return std::string(name) + " has " + std::to_string(got.size()) +
           " elements, not " + std::to_string(want.size());
  }
  for (size_t i = 0; i < got.size(); ++i) {
    if (SameBits(got[i], want[i])) continue;
    char text[128];
    std::snprintf(text, sizeof text, "%s[%zu] is %a, not %a", name, i, got[i],
                  want[i]);
    return text;
  }
  return "";
}

// Tokens [0, tokens) of [outer, len, width].
std::vector<float> Cut(const std::vector<float>& from, int64_t outer,
                       int64_t len, int64_t width, int64_t tokens) {
  std::vector<float> to;
  for (int64_t i = 0; i < outer; ++i) {
    const auto begin = from.begin() + i * len * width;
    to.insert(to.end(), begin, begin + tokens * width);
  }
  return to;
}

void FillMatrix(Random* random, bool has_bias, StoredMatrix* matrix) {
  matrix->values.resize(static_cast<size_t>(matrix->inputs * matrix->outputs));
  random->FillNormal(&matrix->values);
  const float scale = 1.0f / std::sqrt(static_cast<float>(matrix->inputs));
  for (float& x : matrix->values) x *= scale;
  matrix->bias_values.assign(static_cast<size_t>(matrix->outputs), 0.0f);
  if (has_bias) random->FillNormal(&matrix->bias_values);
  Store(matrix, has_bias);
}

}  // namespace

void Store(StoredMatrix* matrix, bool has_bias) {
  StoredMatrix& m = *matrix;
  const bool by_input = m.layout == HEED_LAYOUT_IN_OUT;
  const int64_t width = by_input ? m.outputs : m.inputs;
  const int64_t rows = by_input ? m.inputs : m.outputs;
  const int64_t stride = m.stride == 0 ? width : m.stride;
  const int64_t element = m.dtype == HEED_F32 ? 4 : 2;
  // Between rows lie NaNs.
  m.bytes.assign(static_cast<size_t>(rows * stride * element), '\xFF');
  for (int64_t i = 0; i < m.inputs; ++i) {
    for (int64_t o = 0; o < m.outputs; ++o) {
      const int64_t index = by_input ? i * stride + o : o * stride + i;
      Put(m.dtype, index, &m.values[i * m.outputs + o], &m.bytes);
    }
  }
  m.bias_bytes.clear();
  if (!has_bias) return;
  m.bias_bytes.resize(
      static_cast<size_t>(m.outputs * (m.bias_dtype == HEED_F32 ? 4 : 2)));
  for (int64_t o = 0; o < m.outputs; ++o) {
    Put(m.bias_dtype, o, &m.bias_values[o], &m.bias_bytes);
  }
}

std::vector<float> BlockCase::QkvValues() const {
  if (is_packed) return qkv.values;
  std::vector<float> all;
  for (int64_t i = 0; i < desc.d_model; ++i) {
    for (const StoredMatrix* part : {&q, &k, &v}) {
      const auto row = part->values.begin() + i * part->outputs;
      all.insert(all.end(), row, row + part->outputs);
    }
  }
  return all;
}

std::vector<float> BlockCase::QkvBiases() const {
  if (is_packed) return qkv.bias_values;
  std::vector<float> all;
  for (const StoredMatrix* part : {&q, &k, &v}) {
    all.insert(all.end(), part->bias_values.begin(), part->bias_values.end());
  }
  return all;
}

heed_block_desc Desc(const BlockCase& c) {
  heed_block_desc desc = c.desc;
  if (c.is_packed) {
    desc.qkv = MatrixOf(c.qkv);
  } else {
    desc.q = MatrixOf(c.q);
    desc.k = MatrixOf(c.k);
    desc.v = MatrixOf(c.v);
  }
  desc.out = MatrixOf(c.out);
  desc.norm_gain = VectorOf(c.gain);
  desc.norm_bias = VectorOf(c.bias);
  desc.alibi_slopes = c.slopes.empty() ? nullptr : c.slopes.data();
  desc.sinks = c.sinks.empty() ? nullptr : c.sinks.data();
  return desc;
}

std::string NameOf(const BlockCase& c) {
  const heed_block_desc& d = c.desc;
  char text[320];
  std::snprintf(
      text, sizeof text,
      "b%d n%d d%d hq%d hkv%d qk%d v%d norm%d.%d packed%d types%d%d%d.%d "
      "layouts%d%d rope%d.%d width%d causal%d window%d cap%g alibi%d sinks%d "
      "residual%d",
      static_cast<int>(c.batch), static_cast<int>(c.len),
      static_cast<int>(d.d_model), static_cast<int>(d.heads_q),
      static_cast<int>(d.heads_kv), static_cast<int>(d.dim_qk),
      static_cast<int>(d.dim_v), d.norm, d.norm_place, c.is_packed,
      c.is_packed ? c.qkv.dtype : c.q.dtype, c.k.dtype, c.v.dtype, c.out.dtype,
      c.is_packed ? c.qkv.layout : c.q.layout, c.out.layout, d.rope,
      d.rope_scaling, static_cast<int>(d.rope_width), d.causal, d.window,
      d.softcap, !c.slopes.empty(), !c.sinks.empty(), d.residual);
  return text;
}

void FillNormal(Random* random, BlockCase* c) {
  const heed_block_desc& desc = c->desc;
  c->x.resize(static_cast<size_t>(c->batch * c->len * desc.d_model));
  random->FillNormal(&c->x);
  const auto shape = [&](int64_t inputs, int64_t outputs, StoredMatrix* m) {
    m->inputs = inputs;
    m->outputs = outputs;
    FillMatrix(random, random->Below(4) != 0, m);
  };
  if (c->is_packed) {
    shape(desc.d_model, c->QkvOutputs(), &c->qkv);
  } else {
    shape(desc.d_model, desc.heads_q * desc.dim_qk, &c->q);
    shape(desc.d_model, desc.heads_kv * desc.dim_qk, &c->k);
    shape(desc.d_model, desc.heads_kv * desc.dim_v, &c->v);
  }
  shape(desc.heads_q * desc.dim_v, desc.d_model, &c->out);
}

BlockCase SmallBlock() {
  BlockCase c;
  heed_block_desc_init(&c.desc);
  c.desc.d_model = 8;
  c.desc.heads_q = 4;
  c.desc.heads_kv = 2;
  c.desc.dim_qk = 6;
  c.desc.dim_v = 3;
  c.desc.norm = HEED_NORM_LAYER;
  c.desc.norm_place = HEED_NORM_PRE;
  c.desc.norm_eps = 1e-5;
  c.desc.causal = 1;
  c.desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  c.desc.rope = HEED_ROPE_HALF;
  c.desc.rope_theta = 10000;
  c.batch = 2;
  c.len = 5;
  Random random(1);
  FillNormal(&random, &c);
  return c;
}

BlockCase RandomBlock(uint64_t seed) {
  Random random(seed * 7919 + 13);
  const auto pick = [&](std::initializer_list<int64_t> from) {
    return from.begin()[random.Below(static_cast<int64_t>(from.size()))];
  };
  BlockCase c;
  heed_block_desc& desc = c.desc;
  heed_block_desc_init(&desc);
  c.batch = pick({1, 1, 2, 3});
  c.len = pick({1, 1, 2, 3, 5, 6, 7, 8, 9, 13, 17, 23, 31, 50});
  desc.heads_kv = pick({1, 1, 2, 3});
  desc.heads_q = desc.heads_kv * pick({1, 1, 2, 4});
  desc.dim_qk = pick({1, 2, 3, 4, 6, 8, 10, 15, 16, 18, 32, 64});
  desc.dim_v = pick({0, 0, 1, 5, 8, 16, 33});
  if (desc.dim_v == 0) desc.dim_v = desc.dim_qk;
  desc.d_model = pick(
      {1, 2, 15, 16, 17, 31, 48, 64, 100, 120, 255, 256, 257, 300, 512, 520});
  desc.norm = static_cast<int32_t>(random.Below(3));
  desc.norm_place = static_cast<int32_t>(pick({HEED_NORM_PRE, HEED_NORM_POST}));
  desc.norm_eps = random.Below(2) != 0 ? 1e-5 : 1e-6;
  const auto width = static_cast<size_t>(desc.d_model);
  if (random.Below(3) != 0) c.gain.resize(width);
  if (random.Below(3) != 0) c.bias.resize(width);
  random.FillNormal(&c.gain);
  random.FillNormal(&c.bias);

  c.is_packed = random.Below(2) != 0;
  const auto dtype = static_cast<int32_t>(pick({1, 1, 2, 3}));
  for (StoredMatrix* m : {&c.qkv, &c.q, &c.k, &c.v, &c.out}) {
    m->dtype =
        random.Below(4) != 0 ? dtype : static_cast<int32_t>(pick({1, 2, 3}));
    m->bias_dtype = static_cast<int32_t>(pick({1, 2, 3}));
    m->layout =
        static_cast<int32_t>(pick({HEED_LAYOUT_IN_OUT, HEED_LAYOUT_OUT_IN}));
  }
  desc.rope = static_cast<int32_t>(random.Below(3));
  if (desc.dim_qk < 2 || desc.dim_qk % 2 != 0) desc.rope = HEED_ROPE_NONE;
  desc.rope_theta = random.Below(2) != 0 ? 10000 : 500000;
  desc.rope_width = random.Below(2) != 0 ? 0 : desc.dim_qk / 4 * 2;
  desc.rope_scaling = static_cast<int32_t>(random.Below(3));
  desc.rope_factor = 8;
  desc.rope_low_freq_factor = 1;
  desc.rope_high_freq_factor = 4;
  desc.rope_original_len = 64;
  if (random.Below(3) == 0) {
    for (int64_t b = 0; b < c.batch; ++b) {
      c.positions.push_back(random.Below(100000));
    }
  }
  desc.causal = random.Below(4) != 0 ? 1 : 0;
  desc.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  if (random.Below(4) == 0) {
    desc.scale_mode = HEED_SCALE_VALUE;
    desc.scale = 0.37;
  }
  if (random.Below(4) == 0) desc.softcap = 20;
  if (random.Below(3) == 0) {
    desc.window = 1;
    desc.window_left = random.Below(9) - 1;
    desc.window_right = random.Below(5) - 1;
  }
  const auto heads = static_cast<size_t>(desc.heads_q);
  if (random.Below(5) == 0) c.slopes.resize(heads);
  if (random.Below(5) == 0) c.sinks.resize(heads);
  random.FillNormal(&c.slopes);
  random.FillNormal(&c.sinks);
  desc.residual = random.Below(4) != 0 ? 1 : 0;
  FillNormal(&random, &c);
  // Rows that are longer than they need to be.
  if (random.Below(2) != 0) {
    for (StoredMatrix* m : {&c.qkv, &c.q, &c.k, &c.v, &c.out}) {
      if (m->bytes.empty()) continue;
      m->stride =
          3 + (m->layout == HEED_LAYOUT_IN_OUT ? m->outputs : m->inputs);
      Store(m, !m->bias_bytes.empty());
    }
  }
  return c;
}

std::string Difference(const BlockValues& got, const BlockValues& want) {
  if (got.status != want.status) return "status: " + got.error;
  const struct {
    const char* name;
    std::vector<float> BlockValues::*member;
  } members[] = {
      {"ln", &BlockValues::ln},         {"q", &BlockValues::q},
      {"k", &BlockValues::k},           {"v", &BlockValues::v},
      {"scores", &BlockValues::scores}, {"pattern", &BlockValues::pattern},
      {"z", &BlockValues::z},           {"attn_out", &BlockValues::attn_out},
      {"resid", &BlockValues::resid},   {"y", &BlockValues::y}};
  for (const auto& one : members) {
    const std::string difference =
        FirstDifference(one.name, got.*one.member, want.*one.member);
    if (!difference.empty()) return difference;
  }
  return "";
}

BlockValues FirstTokens(const BlockCase& c, const BlockValues& values,
                        int64_t tokens) {
  const heed_block_desc& desc = c.desc;
  BlockValues cut;
  const auto tokens_of = [&](const std::vector<float>& from) {
    return Cut(from, c.batch, c.len, desc.d_model, tokens);
  };
  cut.y = tokens_of(values.y);
  cut.ln = tokens_of(values.ln);
  cut.attn_out = tokens_of(values.attn_out);
  cut.resid = tokens_of(values.resid);
  cut.q = Cut(values.q, c.batch * desc.heads_q, c.len, desc.dim_qk, tokens);
  cut.k = Cut(values.k, c.batch * desc.heads_kv, c.len, desc.dim_qk, tokens);
  cut.v = Cut(values.v, c.batch * desc.heads_kv, c.len, desc.dim_v, tokens);
  cut.z = Cut(values.z, c.batch * desc.heads_q, c.len, desc.dim_v, tokens);
  return cut;
}

void BindValues(const BlockCase& c, int64_t batch, int64_t len, int64_t keys,
                heed_block_call* call, BlockValues* values) {
  heed_block_call_init(call);
  const heed_block_desc& desc = c.desc;
  const auto bind = [&](int64_t heads, int64_t tokens, int64_t dim,
                        std::vector<float>* to) {
    to->assign(static_cast<size_t>(batch * heads * tokens * dim), kSentinel);
    return heed_dense_output(to->data(), heads, tokens, dim);
  };
  call->y = bind(1, len, desc.d_model, &values->y);
  call->ln = bind(1, len, desc.d_model, &values->ln);
  call->attn_out = bind(1, len, desc.d_model, &values->attn_out);
  call->resid = bind(1, len, desc.d_model, &values->resid);
  call->q = bind(desc.heads_q, len, desc.dim_qk, &values->q);
  call->k = bind(desc.heads_kv, len, desc.dim_qk, &values->k);
  call->v = bind(desc.heads_kv, len, desc.dim_v, &values->v);
  call->z = bind(desc.heads_q, len, desc.dim_v, &values->z);
  if (keys == 0) return;
  call->scores = bind(desc.heads_q, len, keys, &values->scores);
  call->pattern = bind(desc.heads_q, len, keys, &values->pattern);
}

heed_options OptionsOf(const Settings& settings) {
  heed_options options;
  heed_options_init(&options);
  options.threads = settings.threads;
  options.target = settings.target.empty() ? nullptr : settings.target.c_str();
  options.runner = settings.runner;
  if (settings.pinned) {
    options.tuning = HEED_TUNING_PINNED;
    options.tile = settings.tile;
  }
  return options;
}

BlockValues RunBlock(const BlockCase& c, const Settings& settings,
                     bool with_scores, const heed_block_desc* other) {
  BlockValues values;
  const heed_options options = OptionsOf(settings);
  const heed_block_desc desc = other == nullptr ? Desc(c) : *other;
  heed_block* block = nullptr;
  heed_block_plan* plan = nullptr;
  values.status = heed_block_create(&desc, &options, &block);
  if (values.status == HEED_OK) {
    values.status =
        heed_block_plan_create(block, c.batch, c.len, 0, &options, &plan);
  }
  if (values.status == HEED_OK) {
    heed_block_call call;
    BindValues(c, c.batch, c.len, with_scores ? c.len : 0, &call, &values);
    call.x = heed_dense_input(c.x.data(), 1, c.len, desc.d_model);
    call.positions = c.positions.empty() ? nullptr : c.positions.data();
    call.workspace_size = heed_block_plan_workspace_size(plan);
    const std::unique_ptr<void, void (*)(void*)> workspace(
        std::aligned_alloc(64, (call.workspace_size + 63) / 64 * 64),
        std::free);
    call.workspace = workspace.get();
    values.status = heed_block_run(plan, &call);
  }
  if (values.status != HEED_OK) values.error = heed_last_error();
  heed_block_plan_destroy(plan);
  heed_block_destroy(block);
  return values;
}

}  // namespace heed::test
