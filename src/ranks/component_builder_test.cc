#include "ranks/component_builder.h"

#include <map>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ranks/component_config.h"
#include "trainyard/rank_context.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

class Listener : public Component {
 public:
  explicit Listener(const Arguments& given) : event_(given.get<std::string>("event")) {}
  [[nodiscard]] std::vector<std::string> listens_to() const override { return {event_}; }

 private:
  std::string event_;
};

class Other : public Component {};

class Trainer : public Executor {
 public:
  explicit Trainer(const Arguments& given)
      : steps(given.get<int>("steps")),
        main(given.component<Listener>("main")),
        list(given.components<Listener>("list")),
        by_name(given.component_map<Listener>("by_name")) {}
  Shareable execute(std::string_view, const Shareable&, RankContext&, std::stop_token) override {
    return {};
  }

  int steps;
  std::shared_ptr<Listener> main;
  std::vector<std::shared_ptr<Listener>> list;
  std::map<std::string, std::shared_ptr<Listener>> by_name;
};

ComponentRegistry registry() {
  ComponentRegistry made;
  made.add<Trainer>("trainer", {argument("steps", 1), component("main"), components("list"),
                                optional_argument("by_name", ArgumentKind::ComponentMap)});
  made.add<Listener>("listener", {argument("event", "start-run")});
  made.add<Other>("other");
  return made;
}

/// Made as a rank makes them: of what was checked.
BuiltComponents built(std::string_view text) {
  const auto checked = check_components(text, "parts.yaml", "it", registry());
  if (!checked) throw std::runtime_error(checked.error().message);
  return build_components(checked->json, "it", registry());
}

TEST(ComponentBuilder, MakesEachComponentOnceWhoeverRefersToIt) {
  const BuiltComponents made = built(
      "- {id: it, type: trainer, args: {main: {ref: a}, list: [{ref: a}, {ref: off}],\n"
      "   by_name: {x: {ref: a}, y: {type: listener, args: {event: round}}}}}\n"
      "- {id: a, type: listener}\n"
      "- {id: off, type: listener}\n");
  const auto& trainer = dynamic_cast<const Trainer&>(*made.executor);
  EXPECT_EQ(made.all.at(0).component.get(), made.executor);
  EXPECT_EQ(made.all.at(1).component, trainer.main);
  EXPECT_THAT(trainer.list, ElementsAre(trainer.main, made.all.at(2).component));
  EXPECT_EQ(trainer.by_name.at("x"), trainer.main);
  // Components within others come after them, and receive events, too.
  ASSERT_THAT(made.all, SizeIs(4));
  EXPECT_EQ(made.all.at(3).component, trainer.by_name.at("y"));
  EXPECT_EQ(made.all.at(3).id, "");
  EXPECT_THAT(made.listens_to(), ElementsAre("round", "start-run"));
}

TEST(ComponentBuilder, GivesNothingForWhatIsDisabled) {
  const BuiltComponents made =
      built("[{id: it, type: trainer, args: {main: {type: listener, disabled: true}, steps: 7}}]");
  const auto& trainer = dynamic_cast<const Trainer&>(*made.executor);
  EXPECT_EQ(trainer.main, nullptr);
  EXPECT_EQ(trainer.steps, 7);
}

std::string trouble(std::string_view text) {
  try {
    built(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "none";
}

TEST(ComponentBuilder, RefusesAComponentOfAnotherType) {
  EXPECT_EQ(trouble("[{id: it, type: trainer, args: {main: {type: other}}}]"),
            "the component given as 'main' is of another type than is needed there");
}

TEST(ComponentBuilder, RefusesANumberThatNoIntCanHold) {
  EXPECT_EQ(trouble("[{id: it, type: trainer, args: {steps: 2147483647}}]"), "none");
  EXPECT_EQ(trouble("[{id: it, type: trainer, args: {steps: 2147483648}}]"),
            "the argument 'steps' is 2147483648: too large");
}

TEST(ComponentBuilder, RefusesAnotherRegistryThanTheyWereCheckedWith) {
  const std::string json =
      check_components("[{id: it, type: trainer}]", "", "it", registry())->json;
  EXPECT_THROW(build_components(json, "it", ComponentRegistry()), std::invalid_argument);
  EXPECT_THROW(build_components(json, "other", registry()), std::invalid_argument);
}

}  // namespace
}  // namespace trainyard::ranks
