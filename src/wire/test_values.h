// Made-up values of everything in an event and in a command, for tests that write and read them:
// every member of every struct gets a value that it does not have by default, most of the time. The
// members are those of wire/struct_fields.h, where one that is left out does not compile.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <rapidcheck/gen/Arbitrary.h>
#include <rapidcheck/gen/Numeric.h>
#include <rapidcheck/gen/Select.h>
#include <rapidcheck/gen/Text.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/time.h"
#include "model/plan.h"
#include "wire/model_fields.h"

namespace trainyard::wire {

template <class... Values>
void make_up_all(Values&... values);

template <class Number>
  requires std::integral<Number>
void make_up(Number& value) {
  using Limits = std::numeric_limits<Number>;
  value = *rc::gen::oneOf(rc::gen::arbitrary<Number>(),
                          rc::gen::element(Limits::min(), Limits::max(), Number{1}));
}
inline void make_up(double& value) {
  using Limits = std::numeric_limits<double>;
  value = *rc::gen::oneOf(
      rc::gen::arbitrary<double>(),
      rc::gen::element(-0.0, 0.1, 1e15, 9007199254740994.0, 12345678901234567000.0, 1e22, 1e300,
                       Limits::denorm_min(), Limits::max(), Limits::infinity(), -Limits::infinity(),
                       Limits::quiet_NaN()));
}
inline void make_up(std::string& value) {
  value = *rc::gen::oneOf(
      rc::gen::arbitrary<std::string>(),
      rc::gen::element(std::string("two\nlines\t\"in\" \\ quotes"), std::string("\0\x7f", 2),
                       std::string("caf\xc3\xa9"), std::string("not UTF-8 \xff"),
                       std::string(R"({"a":[1,null]})")));
}
inline void make_up(Duration& value) { value = Duration(*rc::gen::arbitrary<Duration::rep>()); }
inline void make_up(Instant& value) { make_up(value.since_start); }
inline void make_up(Bytes& value) { make_up(value.count); }

template <class Enum>
  requires std::is_enum_v<Enum>
void make_up(Enum& value) {
  value = static_cast<Enum>(*rc::gen::inRange<std::size_t>(0, words_of<Enum>().size()));
}

template <class Value>
void make_up(std::optional<Value>& value) {
  if (*rc::gen::arbitrary<bool>()) {
    make_up_all(value.emplace());
  } else {
    value.reset();
  }
}
template <class Value>
void make_up(std::vector<Value>& values) {
  values.resize(*rc::gen::inRange<std::size_t>(0, 4));
  for (Value& value : values) make_up_all(value);
}
/// The one at `index`, or a random one where that is no alternative.
template <class... Alternatives>
void make_up(std::variant<Alternatives...>& value, std::size_t index = sizeof...(Alternatives)) {
  if (index >= sizeof...(Alternatives)) {
    index = *rc::gen::inRange<std::size_t>(0, sizeof...(Alternatives));
  }
  std::size_t next = 0;
  const auto make_if = [&]<class Alternative>(Alternative made) {
    if (next++ != index) return;
    make_up_all(made);
    value = std::move(made);
  };
  (make_if(Alternatives{}), ...);
}

template <class Struct>
  requires(!std::is_same_v<decltype(kFields<Struct>), const std::nullptr_t>)
void make_up(Struct& value) {
  const auto make_up_members = [&](const auto&... fields) {
    const std::set<const void*> members{&(value.*(fields.member))...};
    check(members.size() == sizeof...(fields), "the list of a struct names each member once");
    make_up_all(value.*(fields.member)...);
  };
  std::apply(make_up_members, fields_of<Struct>());
}
template <NumberOfItsOwn Value>
void make_up(Value& value) {
  make_up_all(only_member(value));
}

/// Makes a plan of one that names what is not there: its numbers become smaller, what has no place
/// to stand in goes, and what must be in order is put in order.
inline void mend(model::Plan& plan) {
  for (std::uint32_t i = 0; i < plan.groups.size(); ++i) {
    for (auto* const needs : {&plan.groups[i].needs, &plan.groups[i].needs_by_task}) {
      if (i == 0) needs->clear();
      for (model::GroupIndex& needed : *needs) needed.value %= i;
    }
  }
  const auto below = [](auto& index, std::size_t count) {
    index.value %= static_cast<std::uint32_t>(count);
  };
  if (plan.groups.empty()) plan.shapes.clear();
  for (model::Shape& shape : plan.shapes) below(shape.group, plan.groups.size());
  if (plan.shapes.empty()) plan.tasks.clear(), plan.sharing.clear();
  for (model::PlannedTask& task : plan.tasks) below(task.shape, plan.shapes.size());
  std::ranges::sort(plan.tasks, {}, [&](const model::PlannedTask& task) {
    return plan.shapes[task.shape.value].group;
  });
  for (model::SharingMeasured& measured : plan.sharing) below(measured.shape, plan.shapes.size());
  if (plan.tasks.empty()) {
    plan.task_needs.clear(), plan.reached.clear(), plan.taken.clear(), plan.said.clear();
    plan.failed.clear();
  }
  for (model::Reached& reached : plan.reached) below(reached.task, plan.tasks.size());
  for (model::TakenBefore& taken : plan.taken) below(taken.task, plan.tasks.size());
  for (model::SaidOfTask& said : plan.said) below(said.task, plan.tasks.size());
  for (model::FailedBefore& failed : plan.failed) below(failed.task, plan.tasks.size());
  for (model::TaskNeed& need : plan.task_needs) {
    below(need.task, plan.tasks.size());
    below(need.needed, plan.tasks.size());
  }
  std::erase_if(plan.task_needs, [&](const model::TaskNeed& need) {
    const auto& groups = plan.groups[plan.shape_of(need.task).group.value].needs_by_task;
    return std::ranges::find(groups, plan.shape_of(need.needed).group) == groups.end();
  });
  std::ranges::sort(plan.task_needs);
  const auto repeated = std::ranges::unique(plan.task_needs);
  plan.task_needs.erase(repeated.begin(), repeated.end());
}
inline void make_up(std::shared_ptr<const model::Plan>& it) {
  model::Plan plan;
  make_up_all(plan);
  mend(plan);
  it = std::make_shared<const model::Plan>(std::move(plan));
}

template <class... Values>
void make_up_all(Values&... values) {
  (make_up(values), ...);
}

}  // namespace trainyard::wire
