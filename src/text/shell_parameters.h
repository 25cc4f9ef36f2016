// Whether the positional parameters of a command for the shell, "$@", are others in a part of it
// than those that it was given. Pure.
#pragma once

#include <string_view>

namespace trainyard::text {

/// True where it defines a function, which has parameters of its own, sets them (`set -- a b`), or
/// shifts them. Looks no further than commands that stand there themselves: what `eval` runs, and
/// what stands within quotes, is not looked at.
bool changes_parameters(std::string_view command);

}  // namespace trainyard::text
