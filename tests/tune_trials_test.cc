// Candidates that crash, hang or compute something else, in processes of their
// own: each is told of and left out, and tuning goes on.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/problem.h"
#include "runtime/record_files.h"
#include "tests/cli_fixture.h"
#include "tune/peaks.h"
#include "tune/publish.h"
#include "tune/trial_process.h"
#include "tune/trials.h"
#include "tune/tuner.h"

namespace heed {
namespace {

using Json = nlohmann::json;
using Strings = std::vector<std::string>;
using Gate = std::function<bool(size_t, std::string*)>;

constexpr char kTrialShape[] = "b1_hq2_hkv2_q64_k64_d16_f32";
constexpr char kWrongResult[] = "wrong result: it differs from the default's";

// Trials in forks of this process, with a gate that misbehaves.
StartTrials InForks(size_t count, const Gate& gate) {
  return [count, gate](size_t first) {
    TrialChild child;
    int ends[2];
    if (pipe(ends) != 0) return child;
    child.pid = fork();
    if (child.pid == 0) {
      std::FILE* lines = fdopen(ends[1], "w");
      // Without core files and without a sanitizer's say.
      signal(SIGSEGV, SIG_DFL);
      ServeTrials(first, count, gate, lines);
      _exit(0);
    }
    close(ends[1]);
    child.lines = ends[0];
    return child;
  };
}

// 2 crashes, 3 hangs, 4 is wrong, 5 leaves.
bool Misbehave(size_t trial, std::string* why) {
  if (trial == 2) kill(getpid(), SIGSEGV);
  while (trial == 3) pause();
  if (trial == 5) _exit(7);
  *why = trial == 4 ? kWrongResult : "";
  return trial != 4;
}

TrialOptions QuickTrials(double seconds = 0.5) {
  TrialOptions options;
  options.seconds = seconds;
  options.deadline = MonotonicSeconds() + 1000;
  return options;
}

bool NoChildIsLeft() {
  return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
}

TEST(Trials, SayWhatBecameOfEachAndGoOn) {
  int ticks = 0;
  TrialOptions options = QuickTrials();
  options.tick = [&ticks] { ++ticks; };
  const Trials trials = RunTrials(7, options, InForks(7, Misbehave));
  EXPECT_EQ(trials.failed, "");
  EXPECT_EQ(trials.results,
            (Strings{"", "", "crashed with signal 11", "took longer than 0.5 s",
                     kWrongResult, "ended with exit code 7", ""}));
  EXPECT_GE(ticks, 3);
  EXPECT_TRUE(NoChildIsLeft());
}

TEST(Trials, AreOverIfTheDefaultItselfFails) {
  const auto failed = [](const Gate& gate) {
    const Trials trials = RunTrials(3, QuickTrials(0.1), InForks(3, gate));
    EXPECT_EQ(trials.results.size(), 1u);
    EXPECT_TRUE(NoChildIsLeft());
    return trials.failed;
  };
  EXPECT_EQ(failed([](size_t, std::string*) {
              kill(getpid(), SIGILL);
              return true;
            }),
            "crashed with signal 4");
  EXPECT_EQ(failed([](size_t, std::string*) {
              for (;;) pause();
              return true;
            }),
            "took longer than 0.6 s");
  EXPECT_EQ(failed([](size_t, std::string* why) {
              *why = "no memory";
              return false;
            }),
            "no memory");
  const Trials none = RunTrials(3, QuickTrials(), [](size_t) {
    errno = EAGAIN;
    return TrialChild{};
  });
  EXPECT_EQ(none.failed.rfind("cannot start a process: ", 0), 0u);
}

TEST(Trials, EndWithTheDeadline) {
  TrialOptions options = QuickTrials();
  options.deadline = MonotonicSeconds() - 1;
  const Trials trials = RunTrials(5, options, InForks(5, Misbehave));
  EXPECT_EQ(trials.results.size(), 1u);
}

TEST(Trials, ThatTakeLongBecauseTheDefaultDoesAreNotKilled) {
  const auto slow = [](size_t, std::string*) {
    usleep(150000);
    return true;
  };
  // 0.1 s would be too little, 20 times the default's 0.15 s is not.
  EXPECT_EQ(RunTrials(3, QuickTrials(0.1), InForks(3, slow)).results,
            Strings(3, ""));
}

TEST(Trials, CandidatesAreWordForWordWhatTheyWere) {
  Candidate candidate;
  candidate.target = "AVX2";
  candidate.config.tile = {48, 96, Pack::kTile, Pack::kCall, true};
  candidate.config.cut = {7, 0};
  Candidate back;
  std::string why;
  ASSERT_TRUE(ParseCandidate(CandidateText(candidate), &back, &why)) << why;
  EXPECT_TRUE(back == candidate) << CandidateText(candidate);
  EXPECT_FALSE(ParseCandidate("AVX2", &back, &why));
  EXPECT_FALSE(ParseCandidate("AVX2:warp=1", &back, &why));
}

// Tunes a small shape in this process. In the processes apart, all is well with
// the gate but for those that misbehave.
TunedShape TuneApart(const Gate& gate,
                     const std::string& problem = kTrialShape) {
  TuneMachine machine = OpenMachine();
  TuneOptions options;
  std::string why;
  EXPECT_TRUE(ParseShapeList(problem, &options.shapes, &why)) << why;
  options.effort = Efforts()[1];
  options.budget_seconds = 60;
  // Half a second each.
  options.isolate = [gate](const TrialWork& work) {
    return InForks(work.candidates.size(), gate);
  };
  machine.peaks = MeasurePeaks(machine.probes, machine.machine, 1);
  std::vector<TunedShape> results;
  EXPECT_TRUE(TuneShapes(options, MonotonicSeconds(), nullptr, &machine, {},
                         &results, &why))
      << why;
  EXPECT_EQ(results.size(), 1u);
  return results.empty() ? TunedShape{} : results[0];
}

TEST(Isolation, WhatCrashesOrIsWrongIsNeverAdoptedAndTheRestIsTuned) {
  const TunedShape tuned = TuneApart([](size_t trial, std::string* why) {
    return trial == 3 || Misbehave(trial, why);
  });
  EXPECT_EQ(tuned.skipped, "");
  EXPECT_GT(tuned.confirmation.rounds, 0);
  ASSERT_GE(tuned.rejected.size(), 3u);
  const std::string entry =
      ToString(Candidate{tuned.entry.target, tuned.entry.config});
  const char* const says[] = {": crashed with signal 11", kWrongResult,
                              ": ended with exit code 7"};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NE(tuned.rejected[i].find(says[i]), std::string::npos)
        << tuned.rejected[i];
    EXPECT_NE(tuned.rejected[i].rfind(entry + ":", 0), 0u) << "adopted";
  }
}

TEST(Isolation, IfOnlyTheDefaultIsSoundTheDefaultStays) {
  const TunedShape tuned = TuneApart([](size_t trial, std::string* why) {
    *why = kWrongResult;
    return trial == 0;
  });
  EXPECT_EQ(tuned.skipped, "");
  EXPECT_EQ(tuned.entry.decision, Decision::kKeptDefault);
  EXPECT_EQ(tuned.entry.config, tuned.entry.default_config);
}

TEST(Isolation, ADefaultThatCrashesSkipsTheShape) {
  const TunedShape tuned = TuneApart([](size_t, std::string*) {
    kill(getpid(), SIGSEGV);
    return true;
  });
  EXPECT_EQ(tuned.skipped, "the default, tried apart: crashed with signal 11");
}

class TuneIsolated : public CliFixture {};

TEST_F(TuneIsolated, TheCommandTriesItsCandidatesInProcessesOfTheirOwn) {
  const Result tuned =
      Heed(std::string("tune run --isolate --effort quick --budget 60s --json "
                       "--output records --shapes ") +
           kTrialShape);
  ASSERT_EQ(tuned.code, 0) << tuned.err;
  EXPECT_TRUE(Json::parse(tuned.out)["shapes"][0]["rejected"].empty())
      << tuned.out;
  // The child, seen alone.
  heed_problem problem;
  ASSERT_EQ(heed_problem_parse(kTrialShape, &problem), HEED_OK);
  const std::string sound = CandidateText(DefaultCandidate(
      problem, EqualTargets(KernelDType(problem.dtype)), ThisMachine(), 1));
  const std::string unknown = "NONE" + sound.substr(sound.find(':'));
  const Result child =
      Heed(std::string("tune try --problem ") + kTrialShape + " --candidates " +
           sound + " " + unknown + " " + sound);
  EXPECT_EQ(child.code, 0) << child.err;
  EXPECT_EQ(child.out.rfind("ready 0.", 0), 0u) << child.out;
  EXPECT_NE(child.out.find("\nno "), std::string::npos) << child.out;
  EXPECT_NE(child.out.find("\nok\n"), std::string::npos) << child.out;
  EXPECT_EQ(Heed("tune --help").out.find("  try"), std::string::npos);
}

}  // namespace
}  // namespace heed
