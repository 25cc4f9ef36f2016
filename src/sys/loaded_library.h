// A library that is looked for when the program runs, which needs none where it is not used. It is
// never closed: some have threads. Any thread.
#pragma once

namespace trainyard::sys {

/// Nullptr: there is none of that name.
void* load_library(const char* name);

/// Nullptr: it has none of that name.
void* function_in(void* library, const char* name);

/// Whether it has it, by the type of its header.
template <class Function>
bool find_function(void* library, const char* name, Function*& function) {
  // The only way from what the loader gives to a function.
  function = reinterpret_cast<Function*>(function_in(library, name));
  return function != nullptr;
}

}  // namespace trainyard::sys
