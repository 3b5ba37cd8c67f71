#include "bench/attention_peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <utility>

#include "bench/interleaved.h"
#include "bench/onednn_peers.h"
#include "bench/sgemm_peers.h"
#include "bench/softmax_rows.h"
#include "runtime/runner_tbb.h"

namespace heed {
namespace {

// Score tiles of at most so many floats stay in a core's second level of cache
// beside k and v; more rows make a product cheaper until then.
constexpr int64_t kTileFloats = 64 << 10;
constexpr int64_t kMostRows = 128;

// Rows [first, first + count) of one query head.
struct RowBlock {
  int64_t batch, head, first, count;
};

const float* Row(const heed_input& x, int64_t batch, int64_t head,
                 int64_t token) {
  return static_cast<const float*>(x.data) + batch * x.stride_batch +
         head * x.stride_head + token * x.stride_token;
}

float* Row(const heed_output& x, int64_t batch, int64_t head, int64_t token) {
  return static_cast<float*>(x.data) + batch * x.stride_batch +
         head * x.stride_head + token * x.stride_token;
}

float ScaleOf(const heed_problem& p) {
  return 1 / std::sqrt(static_cast<float>(p.dim_qk));
}

int64_t VisibleTo(const heed_problem& p, int64_t token) {
  return p.causal == HEED_CAUSAL_NONE ? p.len_k : std::min(token + 1, p.len_k);
}

void ForEachBlock(const heed_problem& p, int64_t rows, int threads,
                  const std::function<void(const RowBlock&)>& compute) {
  const int64_t blocks = (p.len_q + rows - 1) / rows;
  struct Blocks {
    std::function<void(int64_t)> compute;
    int64_t count;
    std::atomic<int64_t> next{0};
  } all{[&](int64_t i) {
          const int64_t first = i % blocks * rows, head = i / blocks;
          compute({head / p.heads_q, head % p.heads_q, first,
                   std::min(rows, p.len_q - first)});
        },
        p.batch * p.heads_q * blocks,
        {0}};
  const heed_runner runner = TbbRunner();
  runner.run(
      runner.runner_ctx, static_cast<size_t>(threads),
      [](void* context, size_t) {
        Blocks& mine = *static_cast<Blocks*>(context);
        for (int64_t i; (i = mine.next++) < mine.count;) mine.compute(i);
      },
      &all);
}

void Textbook(const heed_problem& p, const heed_call& call, int threads) {
  const float scale = ScaleOf(p);
  const int64_t group = p.heads_q / p.heads_kv;
  ForEachBlock(p, 16, threads, [&](const RowBlock& block) {
    static thread_local std::vector<float> weights;
    weights.resize(static_cast<size_t>(p.len_k));
    const int64_t b = block.batch, kv_head = block.head / group;
    for (int64_t i = block.first; i < block.first + block.count; ++i) {
      const float* const q = Row(call.q, b, block.head, i);
      const int64_t visible = VisibleTo(p, i);
      for (int64_t j = 0; j < visible; ++j) {
        const float* const k = Row(call.k, b, kv_head, j);
        float score = 0;
        for (int64_t d = 0; d < p.dim_qk; ++d) score += q[d] * k[d];
        weights[j] = score * scale;
      }
      const float most =
          *std::max_element(weights.begin(), weights.begin() + visible);
      float sum = 0;
      for (int64_t j = 0; j < visible; ++j) {
        weights[j] = std::exp(weights[j] - most);
        sum += weights[j];
      }
      float* const out = Row(call.out, b, block.head, i);
      std::fill_n(out, p.dim_v, 0.0f);
      for (int64_t j = 0; j < visible; ++j) {
        const float* const v = Row(call.v, b, kv_head, j);
        const float weight = weights[j] / sum;
        for (int64_t d = 0; d < p.dim_v; ++d) out[d] += weight * v[d];
      }
    }
  });
}

void Composed(const SgemmPeer& library, const heed_problem& p,
              const heed_call& call, int threads) {
  const float scale = ScaleOf(p);
  const int64_t group = p.heads_q / p.heads_kv;
  const int64_t rows =
      std::max<int64_t>(16, std::min(kMostRows, kTileFloats / p.len_k));
  ForEachBlock(p, rows, threads, [&](const RowBlock& block) {
    library.set_threads(1);  // OpenMP's is a setting of the calling thread
    static thread_local std::vector<float> scores;
    const int64_t b = block.batch, kv_head = block.head / group;
    const int64_t keys = VisibleTo(p, block.first + block.count - 1);
    scores.resize(static_cast<size_t>(block.count * keys));
    library.multiply(true, block.count, keys, p.dim_qk, scale,
                     Row(call.q, b, block.head, block.first),
                     call.q.stride_token, Row(call.k, b, kv_head, 0),
                     call.k.stride_token, scores.data(), keys);
    for (int64_t i = 0; i < block.count; ++i) {
      SoftmaxRow(scores.data() + i * keys,
                 static_cast<size_t>(VisibleTo(p, block.first + i)),
                 static_cast<size_t>(keys));
    }
    library.multiply(false, block.count, p.dim_v, keys, 1.0f, scores.data(),
                     keys, Row(call.v, b, kv_head, 0), call.v.stride_token,
                     Row(call.out, b, block.head, block.first),
                     call.out.stride_token);
  });
}

// The peer's calls go round the sets of k and v as heed's do.
class PeerRun {
 public:
  PeerRun(PeerCall call, AttentionCase* attention)
      : call_(std::move(call)), attention_(attention) {}

  void Run() {
    call_(attention_->Call(next_set_));
    if (++next_set_ == attention_->sets()) next_set_ = 0;
  }

  // As AttentionRun::Verify().
  std::string Verify() {
    attention_->ClearOut();
    next_set_ = 0;
    Run();
    return attention_->CheckOut(0,
                                LargestPeerError(attention_->problem().dtype));
  }

 private:
  PeerCall call_;
  AttentionCase* attention_;
  size_t next_set_ = 0;
};

// A peer that has nothing to make ready, and computes float32 alone.
AttentionPeer PlainPeer(
    const std::string& name, const std::string& version,
    const std::function<void(const heed_problem&, const heed_call&,
                             int threads)>& compute) {
  AttentionPeer peer;
  peer.name = name;
  peer.version = version;
  peer.prepare = [compute](const heed_problem& problem, int threads,
                           std::string* why) -> PeerCall {
    if (problem.dtype != HEED_F32) {
      *why = "float32 only";
      return nullptr;
    }
    return [compute, problem, threads](const heed_call& call) {
      compute(problem, call, threads);
    };
  };
  return peer;
}

// Measures what can be, or says in the row why not. False if a result is
// wrong.
bool MeasurePeer(const BenchOptions& options, const AttentionPeer& peer,
                 AttentionCase* attention, Roof* roof, PairRow* row,
                 std::string* why) {
  PeerCall call =
      peer.prepare(attention->problem(), row->threads, &row->refused);
  if (call == nullptr) return true;
  AttentionRun heed_run(attention, row->target, row->threads);
  PeerRun peer_run(std::move(call), attention);
  *why = heed_run.Verify();
  if (why->empty()) *why = peer_run.Verify();
  if (!why->empty()) return false;
  // An interval needs six rounds of two calls of the peer.
  const double limit = options.seconds / 12;
  if (TimeCalls([&peer_run] { peer_run.Run(); }, 1) > limit) {
    row->refused =
        fmt::format("left out, a call takes more than {:.2f} s", limit);
    return true;
  }
  MeasureRounds(
      options, roof, [&peer_run] { peer_run.Run(); },
      [&heed_run] { heed_run.Run(); }, row);
  return true;
}

}  // namespace

std::vector<AttentionPeer> AttentionPeers(std::string* absent) {
  std::vector<AttentionPeer> peers = {
      PlainPeer("textbook", __VERSION__, Textbook)};
  for (const SgemmPeer& library : SgemmPeers()) {
    peers.push_back(PlainPeer(library.name, library.version,
                              [&library](const heed_problem& problem,
                                         const heed_call& call, int threads) {
                                Composed(library, problem, call, threads);
                              }));
  }
  for (AttentionPeer& peer : OneDnnPeers(absent)) peers.push_back(peer);
  return peers;
}

double LargestPeerError(int32_t dtype) {
  const double half_unit = dtype == HEED_F32   ? 0
                           : dtype == HEED_F16 ? std::ldexp(1, -12)
                                               : std::ldexp(1, -9);
  return kLargestError + 6 * half_unit;
}

bool PeersTake(const heed_problem& p) {
  heed_problem plain;
  heed_problem_init(&plain);
  plain.dtype = p.dtype;
  plain.scale_mode = HEED_SCALE_INV_SQRT_DIM;
  plain.batch = p.batch;
  plain.heads_q = p.heads_q;
  plain.heads_kv = p.heads_kv;
  plain.len_q = p.len_q;
  plain.len_k = p.len_k;
  plain.dim_qk = p.dim_qk;
  plain.dim_v = p.dim_v;
  plain.causal = p.causal;
  const auto text_of = [](const heed_problem& problem) {
    char text[256];
    heed_problem_print(&problem, text, sizeof text);
    return std::string(text);
  };
  const bool corner =
      p.causal == HEED_CAUSAL_NONE || p.causal == HEED_CAUSAL_TOP_LEFT ||
      (p.causal == HEED_CAUSAL_BOTTOM_RIGHT && p.len_q == p.len_k);
  return corner && p.len_q > 0 && p.len_k > 0 && p.dim_qk > 0 &&
         text_of(plain) == text_of(p);
}

bool MeasurePeers(const BenchOptions& options, BenchContext* context,
                  std::vector<PairRow>* rows, std::string* why) {
  std::string absent;
  const std::vector<AttentionPeer> peers = AttentionPeers(&absent);
  if (!absent.empty()) fmt::print(stderr, "left out: {}\n", absent);
  for (const NamedProblem& problem : context->problems()) {
    if (!PeersTake(problem.problem)) {
      fmt::print(stderr, "{}: left out, the peers do not compute it\n",
                 problem.name);
      continue;
    }
    AttentionCase& attention = context->CaseOf(problem);
    for (const BenchTarget& target : context->targets()) {
      for (const int threads : context->threads()) {
        for (const AttentionPeer& peer : peers) {
          fmt::print(stderr, "{} / {} threads:{} target:{}\n", problem.name,
                     peer.name, threads, target.name);
          PairRow row;
          row.name = fmt::format("{}: heed / {}", problem.name, peer.name);
          row.with = problem.text;
          row.base = peer.name + " " + peer.version;
          row.target = target.name;
          row.threads = threads;
          if (!MeasurePeer(options, peer, &attention,
                           &context->RoofOf(target, threads), &row, why)) {
            *why = row.name + ": " + *why;
            return false;
          }
          rows->push_back(row);
        }
      }
    }
  }
  SetBestCanary(context, rows);
  return true;
}

}  // namespace heed
