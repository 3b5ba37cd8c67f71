#include "runtime/record_index.h"

#include <algorithm>
#include <cstdlib>

namespace heed {
namespace {

bool Better(const Hit& a, const Hit& b) {
  return a.tier != b.tier ? a.tier < b.tier : a.doublings < b.doublings;
}

// The class whatever the threads: how many pieces each has then says nothing.
ShapeClass WithoutThreads(ShapeClass c) {
  c.threads = 0;
  c.pieces = 0;
  return c;
}

}  // namespace

const char* TierName(Tier tier) {
  switch (tier) {
    case Tier::kPinned:
      return "pinned";
    case Tier::kExact:
      return "exact";
    case Tier::kUarch:
      return "uarch";
    case Tier::kIsa:
      return "isa";
    case Tier::kAnalytical:
      return "analytical";
  }
  return "unknown";
}

void RecordIndex::AddEntry(const FoundRecord& found, const RecordEntry& entry) {
  // Under its own class, and under each that is one doubling away.
  const int steps[][2] = {{0, 0}, {-1, 0}, {1, 0}, {0, -1}, {0, 1}};
  const auto scaled = [](int64_t length, int step) {
    return step < 0 ? length / 2 : step > 0 ? length * 2 : length;
  };
  for (const auto& step : steps) {
    ShapeClass c = entry.shape_class;
    c.len_q = scaled(c.len_q, step[0]);
    c.len_k = scaled(c.len_k, step[1]);
    Hit hit{&entry, &found, found.tier, step[0] != 0 || step[1] != 0};
    const auto [at, inserted] = exact_.try_emplace(c, hit);
    if (!inserted && Better(hit, at->second)) at->second = hit;

    hit.tier = std::max(hit.tier, Tier::kUarch);
    std::vector<Hit>& hits = any_[WithoutThreads(c)];
    const auto same_threads = [&entry](const Hit& other) {
      return other.entry->shape_class.threads == entry.shape_class.threads;
    };
    const auto other = std::find_if(hits.begin(), hits.end(), same_threads);
    if (other == hits.end()) {
      hits.push_back(hit);
    } else if (Better(hit, *other)) {
      *other = hit;
    }
  }
}

const Hit* RecordIndex::Find(const ShapeClass& wanted) const {
  const auto exact = exact_.find(wanted);
  if (exact != exact_.end()) return &exact->second;
  const auto any = any_.find(WithoutThreads(wanted));
  if (any == any_.end()) return nullptr;
  const Hit* best = nullptr;
  const auto distance = [&wanted](const Hit& hit) {
    return std::abs(hit.entry->shape_class.threads - wanted.threads);
  };
  for (const Hit& hit : any->second) {
    if (best == nullptr || hit.tier < best->tier ||
        (hit.tier == best->tier && distance(hit) < distance(*best))) {
      best = &hit;
    }
  }
  return best;
}

}  // namespace heed
