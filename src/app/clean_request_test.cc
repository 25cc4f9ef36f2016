#include "app/clean_request.h"

#include <gtest/gtest.h>

#include "app/test_run_facts.h"
#include "base/bytes.h"

namespace trainyard::app {
namespace {

constexpr std::int64_t kCleanedAtMs = 1'700'000'000'000;
constexpr std::int64_t kHourMs = 3'600'000;

std::string wrong_clean(const CleanWords& words) {
  const Result<CleanRequest> request = read_clean_request(words);
  return request ? std::string() : request.error().message;
}

/// Run 46, which ended two hours ago.
CleanedRun cleaned_run(const run::Cleaned& cleaned) {
  return {.run = ended_run(46, "runs/a").run,
          .ended_unix_ms = kCleanedAtMs - 2 * kHourMs,
          .cleaned = cleaned};
}

/// The lines for one run.
std::string text_of_one(const run::Cleaned& cleaned, const run::CleanOptions& options = {}) {
  return clean_text(options, {.runs = {cleaned_run(cleaned)}, .failed = !cleaned.failed.empty()},
                    kCleanedAtMs);
}

TEST(CleanRequest, NamedRunsAreSelectedWheneverTheyEnded) {
  const Result<CleanRequest> request = read_clean_request({.runs = {"46"}});
  ASSERT_TRUE(request);
  EXPECT_FALSE(request->older);
  EXPECT_FALSE(request->options.keeps_some());
  EXPECT_FALSE(request->options.only_look);
}

TEST(CleanRequest, WithoutARunAnAgeIsNeeded) {
  EXPECT_EQ(wrong_clean({}),
            "no run named: type 'trainyard clean 46', or 'trainyard clean --older 30d --dry-run'");
  EXPECT_EQ(wrong_clean({.older = "30d"}), "");
}

TEST(CleanRequest, AnAgeWithoutAUnitIsNotTakenForSeconds) {
  EXPECT_EQ(wrong_clean({.older = "30"}),
            "--older: '30' has no unit (did you mean '30d' or '30h'?)");
  EXPECT_TRUE(wrong_clean({.older = "soon"}).starts_with("--older: "));
}

TEST(CleanRequest, AnAgeIsALengthOfTime) {
  const Result<CleanRequest> request = read_clean_request({.older = "2h", .dry_run = true});
  ASSERT_TRUE(request);
  EXPECT_EQ(request->older, Duration{2 * kHourMs});
  EXPECT_TRUE(request->options.only_look);
}

TEST(CleanRequest, ResultsAndLogsAreKeptByName) {
  const auto kept = [](const std::vector<std::string>& keep) {
    const run::CleanOptions options =
        read_clean_request({.runs = {"46"}, .keep = keep}).value().options;
    return std::pair(options.keep_results, options.keep_logs);
  };
  EXPECT_EQ(kept({}), std::pair(false, false));
  EXPECT_EQ(kept({"results"}), std::pair(true, false));
  EXPECT_EQ(kept({"logs"}), std::pair(false, true));
  EXPECT_EQ(kept({"results", "logs"}), std::pair(true, true));
  EXPECT_EQ(wrong_clean({.runs = {"46"}, .keep = {"logz"}}),
            "--keep: must be results or logs, not 'logz'");
}

TEST(CleanText, ARunThatIsGoneNeedsNoNote) {
  EXPECT_EQ(text_of_one({.bytes = Bytes{0}, .is_gone = true}),
            "deleted run 46 ('runs/a'), ended 2h ago: 0 B\n1 run, 0 B\n");
}

TEST(CleanText, OtherFilesInTheDirectoryAreNoted) {
  const std::string text = text_of_one({.bytes = gib(1), .entries = 1});
  EXPECT_TRUE(text.starts_with("deleted run 46 ('runs/a'), ended 2h ago: ")) << text;
  EXPECT_TRUE(text.contains("; other files there stay\n1 run, ")) << text;
  EXPECT_FALSE(text_of_one({.bytes = gib(1), .entries = 1, .is_gone = true}).contains("stay"));
}

TEST(CleanText, ADryRunDeletesNothing) {
  const std::string text = text_of_one({.bytes = gib(1), .entries = 1}, {.only_look = true});
  EXPECT_TRUE(text.starts_with("would delete run 46 ('runs/a'), ended 2h ago: ")) << text;
  EXPECT_FALSE(text.contains("stay")) << text;
}

TEST(CleanText, KeptFilesDoNotCount) {
  const std::string text = text_of_one({.bytes = gib(1), .entries = 1}, {.keep_results = true});
  EXPECT_TRUE(text.starts_with("deleted files of run 46 ('runs/a'), ended 2h ago: ")) << text;
  EXPECT_TRUE(text.ends_with(", not counting the kept files\n")) << text;
}

TEST(CleanText, FilesThatCouldNotBeDeletedLeaveAPart) {
  const std::string text =
      text_of_one({.bytes = gib(1), .entries = 1, .failed = {"'x': no permission"}});
  EXPECT_TRUE(text.starts_with("deleted part of run 46 ('runs/a')")) << text;
  EXPECT_FALSE(text.contains("stay")) << text;
}

TEST(CleanText, ARunWithoutFilesHasNothingToDelete) {
  EXPECT_EQ(text_of_one({}), "nothing to delete in run 46 ('runs/a'), ended 2h ago\n1 run, 0 B\n");
}

TEST(CleanText, EmptyFilesAreSomethingToDelete) {
  EXPECT_EQ(text_of_one({.entries = 2}, {.keep_results = true, .only_look = true}),
            "would delete files of run 46 ('runs/a'), ended 2h ago: 0 B\n1 run, 0 B, not counting "
            "the kept files\n");
}

TEST(CleanText, ARunThatCouldNotBeCleanedIsNotCounted) {
  CleanedRun run = cleaned_run({.failed = {"the journal cannot be read"}});
  run.is_done = false;
  EXPECT_EQ(clean_text({}, {.runs = {run}, .failed = true}, kCleanedAtMs), "0 runs, 0 B\n");
}

TEST(CleanText, SaysWhyNoRunWasSelected) {
  EXPECT_EQ(clean_text({}, {}, kCleanedAtMs), "no run ended that long ago\n");
  EXPECT_EQ(clean_text({}, {.some_ended = false}, kCleanedAtMs), "no run here has ended\n");
  EXPECT_EQ(clean_text({}, {.failed = true}, kCleanedAtMs), "0 runs, 0 B\n");
}

TEST(CleanText, ARunOfTheFutureEndedJustNow) {
  CleanedRun run = cleaned_run({.is_gone = true});
  run.ended_unix_ms = kCleanedAtMs + kHourMs;
  EXPECT_TRUE(clean_text({}, {.runs = {run}}, kCleanedAtMs).contains("ended 0.0 s ago"));
}

TEST(CleanJson, HasEachRunAndTheSum) {
  CleanedRun without_number = cleaned_run({.bytes = Bytes{2}, .failed = {"'x': no permission"}});
  without_number.run.number = 0;
  const std::string text =
      clean_json({.keep = {"logs"}, .dry_run = true},
                 {.runs = {cleaned_run({.bytes = Bytes{40}, .is_gone = true}), without_number}});
  EXPECT_TRUE(text.contains("\"dry_run\": true,\n  \"keeps\": [\n    \"logs\"\n  ]")) << text;
  EXPECT_TRUE(text.contains("\"bytes\": 42,\n  \"runs\"")) << text;
  EXPECT_TRUE(text.contains("\"run_directory\": \"/here/runs/a\",\n      \"run_number\": 46"));
  EXPECT_TRUE(text.contains("\"run_number\": null")) << text;
  EXPECT_TRUE(text.contains("\"bytes\": 40,\n      \"is_gone\": true,\n      \"failed\": []"));
  EXPECT_TRUE(text.contains("'x': no permission")) << text;
}

}  // namespace
}  // namespace trainyard::app
