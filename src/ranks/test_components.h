// Components for tests, which ranks make: the test program is their program, too.
#pragma once

#include <initializer_list>
#include <utility>

#include <nlohmann/json_fwd.hpp>

#include "trainyard/component_registry.h"
#include "trainyard/shareable.h"

namespace trainyard::ranks {

/// The types of tests: `tester` executes what its tasks are named after, `recorder` writes down the
/// events that it hears.
ComponentRegistry test_registry();

/// Beside the tester one that hears most events, and does what some of them ask for.
constexpr const char* kWithRecorder =
    "[{id: tester, type: tester, args: {recorder: {ref: recorder}}},"
    " {id: recorder, type: recorder, args: {events: [start-run, end-run, round, throw, progress, "
    "again, greet, react, throw_nested]}}]";

/// A task with values and no buffers.
Shareable with(std::initializer_list<std::pair<const char*, Json>> values);

/// Throws a std::runtime_error with this text, because of a std::out_of_range("row 7").
[[noreturn]] void throw_with_a_cause(const char* text);

}  // namespace trainyard::ranks
