// The JSON of the interface: nlohmann's, declared alone. A program includes <nlohmann/json.hpp>
// where it uses it.
//
// Program and archives must have the same one: nlohmann's version, and the macros that change its
// type (JSON_DIAGNOSTICS), are in the namespace of that type. Where they differ the linker finds
// nlohmann_json_is_that_of_the_archives() missing.
#pragma once

#include <nlohmann/json_fwd.hpp>  // IWYU pragma: export

namespace trainyard {

using Json = nlohmann::json;

namespace detail {

/// Never called. Functions that only return JSON would link whichever type it is.
void nlohmann_json_is_that_of_the_archives(const Json* json);
/// Asks the linker for it, used or not. NOLINTNEXTLINE(*-global-variables): a function.
[[gnu::used, gnu::retain]] inline constexpr auto* kAskedOfTheLinker =
    &nlohmann_json_is_that_of_the_archives;

}  // namespace detail

}  // namespace trainyard
