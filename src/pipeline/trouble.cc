#include "pipeline/trouble.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <typeinfo>

#include <cxxabi.h>

#include "wire/memory_text.h"

namespace trainyard::pipeline {
namespace {

constexpr int kCausesMax = 32;

std::string name_of(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : type.name();
}

/// Adds this exception, and goes on to the one that it was thrown because of.
void look_into(const std::exception& error, Trouble& trouble, int depth) {
  const std::string line = name_of(typeid(error)) + ": " + error.what();
  const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
  trouble.out_of_memory =
      trouble.out_of_memory || memory || wire::out_of_memory_line(line).has_value();
  if (trouble.message.empty()) trouble.message = line;
  trouble.traceback += (depth == 0 ? "" : "because of ") + line + "\n";
  if (depth == kCausesMax) return;
  try {
    std::rethrow_if_nested(error);
  } catch (const std::exception& cause) {
    look_into(cause, trouble, depth + 1);
  } catch (...) {
    trouble.traceback += "because of something that is no std::exception\n";
  }
}

}  // namespace

Trouble trouble_of(const std::exception_ptr& thrown) {
  Trouble trouble;
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    look_into(error, trouble, 0);
  } catch (const char* text) {
    trouble.message = std::string("a text was thrown: ") + (text == nullptr ? "none" : text);
  } catch (const std::string& text) {
    trouble.message = "a text was thrown: " + text;
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    trouble.message = "something that is no std::exception was thrown: " +
                      (type == nullptr ? std::string("of an unknown type") : name_of(*type));
  }
  if (trouble.traceback.empty()) trouble.traceback = trouble.message + "\n";
  return trouble;
}

std::string full_text_of(const std::exception_ptr& thrown) {
  std::string text = trouble_of(thrown).traceback;
  text.pop_back();
  return text;
}

}  // namespace trainyard::pipeline
