#include "ranks/component_config.h"

#include <stop_token>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "trainyard/component.h"
#include "trainyard/rank_context.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {
namespace {

class Hears : public Component {};

class Trains : public Executor {
 public:
  Shareable execute(std::string_view, const Shareable&, RankContext&, std::stop_token) override {
    return {};
  }
};

ComponentRegistry known_types() {
  ComponentRegistry made;
  made.add<Trains>(
      "trainer",
      {argument("rate", 0.1), argument("steps", 10), argument("fast", false),
       argument("name", "huber"), optional_argument("layers", ArgumentKind::List),
       optional_argument("extra", ArgumentKind::Object), component("loss"), components("watchers"),
       optional_argument("by_name", ArgumentKind::ComponentMap)});
  made.add<Hears>("listener");
  made.add<Hears>("loss", {argument<double>("beta"), component("inner")});
  return made;
}

Result<CheckedComponents> checked(std::string_view text, std::string_view executor = "it") {
  return check_components(text, "parts.yaml", executor, known_types());
}

/// The arguments of the first component.
Json arguments(std::string_view text) {
  const auto read = checked(text);
  return read ? Json::parse(read->json).at(0).at("args") : Json(read.error().message);
}

std::string mistakes(std::string_view text, std::string_view executor = "it") {
  const auto read = checked(text, executor);
  return read ? "none" : read.error().message;
}

constexpr std::string_view kUsual = R"({"by_name":{},"extra":{},"fast":false,"layers":[],)"
                                    R"("loss":null,"name":"huber","rate":0.1,"steps":10,)"
                                    R"("watchers":[]})";

TEST(ComponentConfig, GivesEveryArgumentThatTheTypeHas) {
  EXPECT_EQ(arguments("[{id: it, type: trainer}]"), Json::parse(kUsual));
  Json given = Json::parse(kUsual);
  given.update({{"rate", 3}, {"steps", -5}, {"fast", true}, {"name", "1.10"}});
  given.update({{"layers", {1, "two", nullptr, {{"three", 3.5}}}}, {"extra", {{"a", {1}}}}});
  EXPECT_EQ(arguments("- id: it\n"
                      "  type: trainer\n"
                      "  args: {rate: 3, steps: -5, fast: true, name: 1.10,\n"
                      "         layers: [1, two, null, {three: 3.5}], extra: {a: [1]}}\n"),
            given);
}

TEST(ComponentConfig, SaysOfWhichKindAnArgumentMustBe) {
  EXPECT_EQ(mistakes("- id: it\n"
                     "  type: trainer\n"
                     "  args: {rate: fast, steps: 1.5, fast: 1, layers: {}, extra: [], loss: 3,\n"
                     "         watchers: {}, by_name: []}\n"),
            "parts.yaml:3:16: components/0: type 'trainer': the argument 'rate' must be a number\n"
            "parts.yaml:3:29: components/0: type 'trainer': the argument 'steps' must be a whole "
            "number\n"
            "parts.yaml:3:40: components/0: type 'trainer': the argument 'fast' must be true or "
            "false\n"
            "parts.yaml:3:51: components/0: type 'trainer': the argument 'layers' must be a list\n"
            "parts.yaml:3:62: components/0: type 'trainer': the argument 'extra' must be a "
            "mapping\n"
            "parts.yaml:3:72: components/0: type 'trainer': the argument 'loss' must be a "
            "component ({type: ..., args: ...} or {ref: id})\n"
            "parts.yaml:4:20: components/0: type 'trainer': the argument 'watchers' must be a list "
            "of components\n"
            "parts.yaml:4:33: components/0: type 'trainer': the argument 'by_name' must be a "
            "mapping of components");
}

TEST(ComponentConfig, MayNestComponentsInArgumentsListsAndObjects) {
  const Json read = arguments(R"([
    {"id": "it", "type": "trainer", "args": {
      "loss": {"type": "loss", "args": {"beta": 1, "inner": {"path": "some.module.listener"}}},
      "watchers": [{"ref": "other"}, {"name": "listener"}, {"type": "listener", "disabled": true}],
      "by_name": {"a": {"ref": "other"}, "b": null}}},
    {"id": "other", "type": "listener"}])");
  const Json listener{{"type", "listener"}, {"args", Json::object()}};
  EXPECT_EQ(read.at("loss"),
            (Json{{"type", "loss"}, {"args", {{"beta", 1}, {"inner", listener}}}}));
  EXPECT_EQ(read.at("watchers"), (Json::array({{{"ref", "other"}}, listener, nullptr})));
  EXPECT_EQ(read.at("by_name"), (Json{{"a", {{"ref", "other"}}}, {"b", nullptr}}));
}

TEST(ComponentConfig, LeavesOutWhatIsDisabledAndChecksItAllTheSame) {
  const auto read = checked("[{id: it, type: trainer}, {id: off, type: listener, disabled: true}]");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(Json::parse(read->json).size(), 1U);
  EXPECT_EQ(mistakes("- {id: it, type: trainer, args: {loss: {ref: off}}}\n"
                     "- {id: off, type: loss, disabled: true}\n"),
            "parts.yaml:1:46: components: the component 'off' is disabled\n"
            "parts.yaml:2:3: components/1: type 'loss': the argument 'beta' is missing");
  EXPECT_EQ(mistakes("[{id: it, type: trainer, disabled: yes}]"),
            "parts.yaml:1:36: components/0: 'disabled' must be true or false");
}

TEST(ComponentConfig, TellsAllMistakesWithTheNearestWord) {
  EXPECT_EQ(
      mistakes("- {id: it, typ: trainer}\n"
               "- {id: it, type: trainr}\n"
               "- {type: listener, args: {x: 1}}\n"
               "- {id: a, path: listener}\n"
               "- {id: '', type: [1]}\n"
               "- 7\n"
               "- {id: b, type: listener, args: [], oops: 1}\n"),
      "parts.yaml:1:3: components/0: 'type' is missing\n"
      "parts.yaml:2:8: components/1: the id 'it' is taken by the component in line 1\n"
      "parts.yaml:2:18: components/1: there is no type 'trainr' (did you mean 'trainer'?)\n"
      "parts.yaml:3:3: components/2: 'id' is missing\n"
      "parts.yaml:3:27: components/2: type 'listener': unknown key 'x'; no keys are allowed here\n"
      "parts.yaml:4:17: components/3: invalid path 'listener': missing module name\n"
      "parts.yaml:5:8: components/4: 'id' must be text, and not empty\n"
      "parts.yaml:5:18: components/4: 'type' must be text, and not empty\n"
      "parts.yaml:6:3: components/5: a component must be a mapping\n"
      "parts.yaml:7:33: components/6: 'args' must be a mapping\n"
      "parts.yaml:7:37: components/6: unknown key 'oops'; the known keys are id, type, path, name, "
      "args, "
      "disabled");
}

TEST(ComponentConfig, KnowsWhatReferencesLeadTo) {
  EXPECT_EQ(mistakes("- {id: it, type: trainer, args: {loss: {ref: los}}}\n"
                     "- {id: loss, type: listener}\n"),
            "parts.yaml:1:46: components: there is no component 'los' (did you mean 'loss'?)");
  EXPECT_EQ(mistakes("- {id: it, type: trainer, args: {loss: {ref: one}}}\n"
                     "- {id: one, type: loss, args: {beta: 1, inner: {ref: two}}}\n"
                     "- {id: two, type: loss, args: {beta: 1, inner: {type: loss, args: {beta: 1, "
                     "inner: {ref: one}}}}}\n"),
            "parts.yaml:2:54: components: the component 'one' needs itself, by way of 'two'\n"
            "parts.yaml:3:90: components: the component 'two' needs itself, by way of 'one'");
  EXPECT_EQ(mistakes("[{id: it, type: trainer, args: {loss: {ref: it}}}]"),
            "parts.yaml:1:45: components: the component 'it' needs itself, by way of 'it'");
}

TEST(ComponentConfig, NeedsAnExecutorThatExecutes) {
  EXPECT_EQ(mistakes("[{id: it, type: listener}]"),
            "parts.yaml:1:2: components: 'it' is to execute, and its type 'listener' is no "
            "executor");
  EXPECT_EQ(mistakes("[{id: a, type: trainer}]"),
            "parts.yaml:1:1: components: there is no component 'it' to execute; there are a");
  EXPECT_EQ(mistakes("[]", ""),
            "parts.yaml:1:1: components: no executor is named, and none that could");
  EXPECT_EQ(mistakes("[{id: it, type: trainer, disabled: true}]"),
            "parts.yaml:1:2: components: the executor 'it' is disabled");
}

TEST(ComponentConfig, IsOfOneLanguage) {
  const auto python = checked("[{id: it, type: python, args: {script: a.py, entry: Trains}}]");
  ASSERT_TRUE(python.has_value()) << python.error().message;
  EXPECT_TRUE(python->in_python);
  EXPECT_FALSE(checked("[{id: it, type: trainer}]").value().in_python);
  EXPECT_EQ(mistakes("- {id: it, type: python, args: {script: a.py, entry: Trains}}\n"
                     "- {id: a, type: listener}\n"),
            "parts.yaml:2:3: components: 'a' is not in Python and the executor 'it' is: a rank is "
            "one program");
}

TEST(ComponentConfig, IsRefusedWhenItIsNoYamlOrNoList) {
  EXPECT_EQ(mistakes("{id: it}"), "parts.yaml:1:1: components: there must be a list");
  EXPECT_EQ(mistakes("[{id: it"), "parts.yaml:1:1: not valid YAML: the '{' at 1:2 is not closed");
  EXPECT_EQ(mistakes(""), "parts.yaml: components: there are none");
  EXPECT_EQ(mistakes("null"), "parts.yaml:1:1: components: there must be a list");
}

}  // namespace
}  // namespace trainyard::ranks
