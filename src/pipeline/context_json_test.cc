#include "trainyard/context_json.h"

#include <map>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pipeline/test_loop.h"

namespace trainyard::pipeline {
namespace {

struct Rich : Context {
  std::int64_t env_step = 0;
  double best = -std::numeric_limits<double>::infinity();
  std::vector<double> returns;
  std::map<std::string, int> counts;
  std::string note;
  static constexpr auto kept = keep<&Rich::env_step, &Rich::best, &Rich::returns, &Rich::counts>;
};

TEST(ContextJson, SaysWhatIsKeptAndTheStep) {
  Rich context;
  context.env_step = 4100;
  context.total_step = 41;
  context.returns = {0.5, 1};
  context.note = "not kept";
  EXPECT_EQ(kept_to_json(context).value(),
            Json::parse(R"({"total_step": 41, "kept": {"env_step": 4100, "best": "-inf",
                            "returns": [0.5, 1.0], "counts": {}}})"));
}

TEST(ContextJson, ComesBackAsItWas) {
  Rich context;
  context.env_step = -7;
  context.best = std::numeric_limits<double>::quiet_NaN();
  context.counts = {{"a", 1}};
  context.total_step = 3;
  // Also through text.
  const Json saved = Json::parse(kept_to_json(context).value().dump());
  Rich again;
  again.note = "stays";
  ASSERT_TRUE(kept_from_json(saved, again));
  EXPECT_EQ(again.env_step, -7);
  EXPECT_TRUE(std::isnan(again.best));
  EXPECT_EQ(again.counts, context.counts);
  EXPECT_EQ(again.total_step, 3U);
  EXPECT_EQ(again.note, "stays");
}

TEST(ContextJson, RefusesANumberThatJsonCannotSay) {
  Rich context;
  context.returns = {1, std::numeric_limits<double>::infinity()};
  EXPECT_EQ(
      kept_to_json(context).error().message,
      "kept member 'returns': holds a number that is infinite or none, which JSON cannot say");
}

TEST(ContextJson, NamesWhatDoesNotFitAndChangesNothing) {
  const auto error_of = [](const std::string& text) {
    Rich context;
    context.env_step = 5;
    const Result<void> read = kept_from_json(Json::parse(text), context);
    EXPECT_EQ(context.env_step, 5);
    EXPECT_EQ(context.total_step, 0U);
    return read ? "read" : read.error().message;
  };
  EXPECT_EQ(error_of("[1]"), "expected an object, got [1]");
  EXPECT_EQ(error_of(R"({"kept": 3})"), "there is no object 'kept'");
  EXPECT_EQ(error_of(R"({"kept": {"env_step": 1, "best": 1, "counts": {}}})"),
            "kept member 'returns' is missing");
  const std::string rest = R"("best": 1, "returns": [], "counts": {})";
  EXPECT_EQ(error_of(R"({"kept": {"env_step": 1, "env_steps": 1, )" + rest + "}}"),
            "there is no kept member 'env_steps' (did you mean 'env_step'?)");
  EXPECT_EQ(error_of(R"({"kept": {"env_step": 1, )" + rest + "}}"),
            "'total_step' must be a count, 0 or more");
  EXPECT_EQ(error_of(R"({"total_step": -1, "kept": {"env_step": 1, )" + rest + "}}"),
            "'total_step' must be a count, 0 or more");
  for (const char* wrong : {"\"x\"", "0.5", "18446744073709551615", "null", "true"}) {
    EXPECT_EQ(
        error_of(R"({"total_step": 1, "kept": {"env_step": )" + std::string(wrong) + ", " + rest +
                 "}}"),
        "kept member 'env_step': " + std::string(wrong) + " does not fit: no integer of its size");
  }
  EXPECT_THAT(error_of(R"({"total_step": 1, "kept": {"env_step": 1, "best": 1, "returns": [1, "x"],
                           "counts": {}}})"),
              testing::StartsWith("kept member 'returns': [1,\"x\"] does not fit: "));
  EXPECT_EQ(error_of(R"({"total_step": 1, "kept": {"env_step": 1, "best": [], "returns": [],
                         "counts": {}}})"),
            "kept member 'best': [] does not fit: no number");
}

TEST(ContextJson, HasAPipelineGoOnWhereAnotherEnded) {
  const auto use = [](Pipeline<Loop>& loop) {
    loop.use([](Loop& context) { context.count += static_cast<int>(context.total_step); });
  };
  Pipeline<Loop> whole;
  use(whole);
  EXPECT_TRUE(whole.run({.max_steps = 7}));

  Pipeline<Loop> first;
  use(first);
  EXPECT_TRUE(first.run({.max_steps = 4}));
  Pipeline<Loop> second;
  use(second);
  ASSERT_TRUE(resume(second, kept_to_json(first.context()).value()));
  EXPECT_TRUE(second.run({.max_steps = 3}));
  EXPECT_EQ(second.context().count, whole.context().count);
  EXPECT_EQ(second.context().total_step, whole.context().total_step);
  EXPECT_FALSE(resume(second, Json::object()));
}

}  // namespace
}  // namespace trainyard::pipeline
