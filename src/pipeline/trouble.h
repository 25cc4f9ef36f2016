// Exceptions of user code, as text. The one place that looks into its exceptions.
#pragma once

#include <exception>
#include <string>

namespace trainyard::pipeline {

struct Trouble {
  bool out_of_memory = false;  ///< The host's or a GPU's, as far as it says.
  std::string message;         ///< "std::runtime_error: no such file"
  std::string traceback;       ///< With what it was thrown because of, one a line.
};

/// `thrown` may be of any type.
Trouble trouble_of(const std::exception_ptr& thrown);
/// The traceback as the text of an error: without the end of its last line.
std::string full_text_of(const std::exception_ptr& thrown);

}  // namespace trainyard::pipeline
