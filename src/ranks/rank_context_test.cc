#include "trainyard/rank_context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "ranks/context_access.h"

namespace trainyard::ranks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ContextKey<double> kRate{.name = "rate"};
constexpr ContextKey<std::int64_t> kStickyRound{.name = "round", .sticky = true};
constexpr ContextKey<std::string> kOpen{.name = "open", .is_private = false};
constexpr ContextKey<std::int64_t> kHere{.name = "here", .transferable = false};
constexpr ContextKey<std::shared_ptr<int>> kLive{.name = "live"};

TEST(RankContext, KeepsAValueUnderATypedKey) {
  RankContext context;
  EXPECT_EQ(context.get(kRate), std::nullopt);
  context.set(kRate, 0.5).value();
  EXPECT_EQ(context.get(kRate), 0.5);
  EXPECT_TRUE(context.remove(kRate));
  EXPECT_FALSE(context.remove(kRate));
  EXPECT_EQ(context.get(kRate), std::nullopt);
  // A whole number is one of the numbers; a number is no text.
  context.set(kStickyRound, 3).value();
  EXPECT_EQ(context.get(ContextKey<double>{.name = "round"}), 3.0);
  EXPECT_EQ(context.get(ContextKey<std::string>{.name = "round"}), std::nullopt);
}

TEST(RankContext, SharesWhatIsStickyWithItsSiblings) {
  RankContext context;
  RankContext sibling = context.sibling();
  context.set(kStickyRound, 1).value();
  context.set(kRate, 0.5).value();
  EXPECT_EQ(sibling.get(kStickyRound), 1);
  EXPECT_EQ(sibling.get(kRate), std::nullopt);
  sibling.set(kStickyRound, 2).value();
  EXPECT_EQ(context.get(kStickyRound), 2);
  EXPECT_EQ(RankContext().get(kStickyRound), std::nullopt);
}

TEST(RankContext, GivesANameOneSetOfFlagsForGood) {
  RankContext context;
  context.set(kRate, 0.5).value();
  EXPECT_EQ(context.set(ContextKey<double>{.name = "rate", .sticky = true}, 1).error().message,
            "the property 'rate' is private, not sticky, transferable, and cannot become private, "
            "sticky, transferable");
  context.remove(kRate);
  EXPECT_FALSE(context.sibling().set(ContextKey<double>{.name = "rate", .is_private = false}, 1));
  EXPECT_EQ(context.set(ContextKey<double>{.name = "__run"}, 1).error().message,
            "the name '__run' is reserved");
  EXPECT_EQ(context.set(ContextKey<double>{.name = ""}, 1).error().message,
            "the name '' is reserved");
}

TEST(RankContext, ShowsOthersWhatIsNotPrivate) {
  RankContext context;
  context.set(kRate, 0.5).value();
  context.set(kOpen, "yes").value();
  context.set(ContextKey<std::shared_ptr<int>>{.name = "alive", .is_private = false}, nullptr)
      .value();
  EXPECT_EQ(context.public_values(), (Json{{"open", "yes"}}));
}

TEST(RankContext, SendsWhatTheOtherEndDoesNotKnowYetAndNothingThatStays) {
  RankContext context;
  ContextMirror mirror;
  ContextMirror sticky;
  EXPECT_EQ(ContextAccess::changes(context, mirror, sticky), "");
  context.set(kRate, 0.5).value();
  context.set(kStickyRound, 3).value();
  context.set(kHere, 1).value();
  context.set(kLive, std::make_shared<int>(1)).value();
  EXPECT_EQ(ContextAccess::changes(context, mirror, sticky),
            R"({"set":{"rate":[0.5,1],"round":[3,3]}})");
  EXPECT_EQ(ContextAccess::changes(context, mirror, sticky), "");
  context.set(kRate, 0.5).value();  // Set again: it may have been changed there.
  context.remove(kStickyRound);
  EXPECT_EQ(ContextAccess::changes(context, mirror, sticky),
            R"({"remove":["round"],"set":{"rate":[0.5,1]}})");
}

TEST(RankContext, SendsBackWhatWasChangedInItAndNotWhatCame) {
  RankContext context;
  EXPECT_THAT(ContextAccess::merge(context, R"({"set":{"rate":[0.5,1],"round":[3,3]}})"),
              IsEmpty());
  EXPECT_EQ(context.get(kRate), 0.5);
  EXPECT_EQ(context.sibling().get(kStickyRound), 3);
  EXPECT_EQ(ContextAccess::own_changes(context), "");
  context.set(kRate, 0.25).value();
  context.remove(kStickyRound);
  context.set(kHere, 1).value();
  EXPECT_EQ(ContextAccess::own_changes(context), R"({"remove":["round"],"set":{"rate":[0.25,1]}})");
  EXPECT_EQ(ContextAccess::own_changes(ContextAccess::copy(context)), "");
  EXPECT_EQ(ContextAccess::copy(context).get(kRate), 0.25);
}

TEST(RankContext, TakesNothingInThatWouldReplaceWhatStaysHere) {
  RankContext context;
  context.set(kHere, 1).value();
  context.set(kLive, std::make_shared<int>(7)).value();
  EXPECT_THAT(
      ContextAccess::merge(context, R"({"set":{"here":[2,1],"live":[2,1],"__x":[1,1],"odd":3},)"
                                    R"("remove":["here","live",4]})"),
      ElementsAre("the name '__x' is reserved",
                  "the property 'here' is private, not sticky, not transferable, and cannot become "
                  "private, not sticky, transferable",
                  "the property 'live' is private, not sticky, not transferable, and cannot become "
                  "private, not sticky, transferable",
                  "the property 'odd' is not [value, flags]"));
  EXPECT_EQ(context.get(kHere), 1);
  EXPECT_EQ(*context.get(kLive).value_or(nullptr), 7);
  EXPECT_THAT(ContextAccess::merge(context, "[1]"),
              ElementsAre("changes of a context must be an object"));
  EXPECT_THAT(ContextAccess::merge(context, R"({"set":3,"remove":{}})"), testing::SizeIs(1));
}

Json nested(int levels) {
  Json value = 1;
  for (int i = 0; i < levels; ++i) value = Json::array({std::move(value)});
  return value;
}

TEST(RankContext, RefusesWhatIsNestedTooDeepToBeSent) {
  constexpr ContextKey<Json> kTree{.name = "tree"};
  RankContext context;
  context.set(kTree, nested(60)).value();
  EXPECT_EQ(context.set(kTree, nested(61)).error().message,
            "the value of 'tree' is nested deeper than 60");
  EXPECT_FALSE(refused("round", nested(60)).has_value());
  EXPECT_EQ(refused("round", nested(61)).value_or(EventOutcome{}).message,
            "event 'round': its data is nested deeper than 60");
}

TEST(RankContext, IsInNoRankWhereThereIsNone) {
  RankContext context;
  EXPECT_EQ(context.rank(), std::nullopt);
  EXPECT_EQ(context.ranks(), 1);
  EXPECT_EQ(context.fire("round").code, ReturnCode::Ok);
  EXPECT_EQ(context.alloc(DType::Float32, {2, 3}).value().count(), 6U);
  EXPECT_FALSE(context.alloc(DType::Float32, {-1}).has_value());
}

}  // namespace
}  // namespace trainyard::ranks
