// Which problems other libraries take, that they compute them right, and that
// they say why not.

#include "bench/attention_peers.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/attention_case.h"
#include "bench/pairs.h"

namespace heed {
namespace {

heed_problem ProblemOf(const std::string& text) {
  heed_problem problem;
  EXPECT_EQ(heed_problem_parse(text.c_str(), &problem), HEED_OK)
      << heed_last_error();
  return problem;
}

TEST(AttentionPeers, TakeWhatTheyComputeAndNoMore) {
  for (const char* text :
       {"b1_hq2_hkv1_q9_k9_d8_causal_f32", "b2_hq2_hkv2_q1_k40_d8_f32",
        "b1_hq2_hkv1_q9_k12_d8_causaltl_f32", "b1_hq2_hkv1_q9_k9_d8_bf16"}) {
    EXPECT_TRUE(PeersTake(ProblemOf(text))) << text;
  }
  for (const char* text :
       {"b1_hq2_hkv1_q9_k12_d8_causalbr_f32", "b1_hq2_hkv1_q9_k9_d8_cap30_f32",
        "b1_hq2_hkv1_q9_k9_d8_causal_win3x0_f32",
        "b1_hq2_hkv1_q9_k9_d8_ragged_f32", "b1_hq2_hkv1_q9_k9_d8_scale1_f32"}) {
    EXPECT_FALSE(PeersTake(ProblemOf(text))) << text;
  }
}

TEST(AttentionPeers, AreRightOrSayWhyTheyRefuse) {
  std::string absent;
  const std::vector<AttentionPeer> peers = AttentionPeers(&absent);
  for (const char* text :
       {"b2_hq4_hkv2_q300_k300_d24_causal_f32", "b1_hq3_hkv1_q1_k77_d40_f32",
        "b1_hq2_hkv2_q150_k9_d16_causaltl_f32",
        "b2_hq6_hkv2_q20_k50_d16_dv8_f32",
        "b1_hq4_hkv2_q1_k50_d16_causaltl_f32", "b2_hq4_hkv2_q33_k33_d16_f16",
        "b2_hq4_hkv2_q33_k33_d16_causal_bf16"}) {
    NamedProblem named;
    named.name = named.text = text;
    named.problem = ProblemOf(text);
    const heed_problem& p = named.problem;
    AttentionCase attention(named, 1);
    for (const AttentionPeer& peer : peers) {
      std::string why;
      const PeerCall call = peer.prepare(p, 2, &why);
      if (call == nullptr) {
        EXPECT_NE(why, "") << peer.name << " " << text;
        EXPECT_NE(p.dtype, HEED_F32) << peer.name << " " << text << ": " << why;
        continue;
      }
      for (int repeat = 0; repeat < 2; ++repeat) {
        attention.ClearOut();
        call(attention.Call(0));
        EXPECT_EQ(attention.CheckOut(0, LargestPeerError(p.dtype)), "")
            << peer.name << " " << peer.version << " " << text;
      }
    }
  }
}

TEST(AttentionPeers, ARowSaysWhyItIsEmpty) {
  PairRow row;
  row.name = "tiny: heed / other";
  row.refused = "float32 only";
  EXPECT_NE(PairsMarkdown({}, {row}).find("| float32 only |"),
            std::string::npos);
  const auto json = nlohmann::json::parse(PairsJson({}, {row}));
  EXPECT_EQ(json["rows"][0]["refused"], "float32 only");
  EXPECT_FALSE(json["rows"][0].contains("ratio"));
}

}  // namespace
}  // namespace heed
