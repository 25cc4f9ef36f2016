#include "trainyard/shareable.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/check.h"

namespace trainyard {
namespace {

const Json& member(const Json& object, std::string_view name) {
  static const Json kNull;  // NOLINT(readability-identifier-naming)
  const auto found = object.find(name);
  return found == object.end() ? kNull : *found;
}

}  // namespace

struct Shareable::State {
  ReturnCode code = ReturnCode::Ok;
  std::string message;
  std::string traceback;
  Json values = Json::object();
  Json headers = Json::object();
  Json cookies = Json::object();
  std::map<std::string, Buffer, std::less<>> buffers;
};

Shareable::Shareable() : state_(std::make_unique<State>()) {}
Shareable::Shareable(const Shareable& other) : state_(std::make_unique<State>(*other.state_)) {}
/// The other one is empty after it, and can be used.
Shareable::Shareable(Shareable&& other) noexcept
    : state_(std::exchange(other.state_, std::make_unique<State>())) {}
Shareable& Shareable::operator=(Shareable other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}
Shareable::~Shareable() = default;

Shareable Shareable::reply(ReturnCode code, std::string message) {
  Shareable made;
  made.set_outcome(code, std::move(message));
  return made;
}

ReturnCode Shareable::code() const { return state_->code; }
const std::string& Shareable::message() const { return state_->message; }
const std::string& Shareable::traceback() const { return state_->traceback; }

void Shareable::set_outcome(ReturnCode code, std::string message, std::string traceback) {
  state_->code = code;
  state_->message = std::move(message);
  state_->traceback = std::move(traceback);
}

void Shareable::set(std::string_view name, const Json& value) {
  state_->values[std::string(name)] = value;
}
const Json& Shareable::get(std::string_view name) const { return member(state_->values, name); }
bool Shareable::has(std::string_view name) const { return state_->values.contains(name); }
const Json& Shareable::values() const { return state_->values; }
void Shareable::set_values(const Json& object) {
  check(object.is_object(), "an object of values");
  state_->values = object;
}

void Shareable::set_header(std::string_view name, const Json& value) {
  state_->headers[std::string(name)] = value;
}
const Json& Shareable::header(std::string_view name) const { return member(state_->headers, name); }
const Json& Shareable::headers() const { return state_->headers; }

void Shareable::set_cookie(std::string_view name, const Json& value) {
  state_->cookies[std::string(name)] = value;
}
const Json& Shareable::cookie(std::string_view name) const { return member(state_->cookies, name); }
const Json& Shareable::cookies() const { return state_->cookies; }

void Shareable::set_buffer(std::string name, Buffer buffer) {
  state_->buffers.insert_or_assign(std::move(name), std::move(buffer));
}
const Buffer* Shareable::buffer(std::string_view name) const {
  const auto found = state_->buffers.find(name);
  return found == state_->buffers.end() ? nullptr : &found->second;
}
const std::map<std::string, Buffer, std::less<>>& Shareable::buffers() const {
  return state_->buffers;
}

}  // namespace trainyard
