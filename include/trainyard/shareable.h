// The message to an executor and its reply: values, buffers, and a return code (NVFlare
// `Shareable`).
//
//   Shareable task;
//   task.set("rate", 0.1);
//   task.set_buffer("weights", weights);
//   Shareable reply = executor.execute("train", task, context);
//   if (reply.code() != ReturnCode::Ok) return complain(reply.message());
//
// A value. Values are JSON, so nothing that comes can run code; buffers are handles and not copied.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "trainyard/buffer.h"
#include "trainyard/json.h"  // IWYU pragma: export
#include "trainyard/return_code.h"

namespace trainyard {

class Shareable {
 public:
  Shareable();
  Shareable(const Shareable& other);
  Shareable(Shareable&& other) noexcept;
  Shareable& operator=(Shareable other) noexcept;
  ~Shareable();

  /// A reply that says how it went and nothing else.
  static Shareable reply(ReturnCode code, std::string message = {});

  /// Ok at first.
  [[nodiscard]] ReturnCode code() const;
  /// Why it is not ok, for people.
  [[nodiscard]] const std::string& message() const;
  /// Where in the executor, when it threw.
  [[nodiscard]] const std::string& traceback() const;
  void set_outcome(ReturnCode code, std::string message = {}, std::string traceback = {});

  void set(std::string_view name, const Json& value);
  /// null when there is none.
  [[nodiscard]] const Json& get(std::string_view name) const;
  [[nodiscard]] bool has(std::string_view name) const;
  /// An object of all of them.
  [[nodiscard]] const Json& values() const;
  void set_values(const Json& object);

  /// About the values: of which round they are, how they are packed.
  void set_header(std::string_view name, const Json& value);
  [[nodiscard]] const Json& header(std::string_view name) const;
  [[nodiscard]] const Json& headers() const;

  /// Come back with the reply as they were sent, whatever the executor does.
  void set_cookie(std::string_view name, const Json& value);
  [[nodiscard]] const Json& cookie(std::string_view name) const;
  [[nodiscard]] const Json& cookies() const;

  void set_buffer(std::string name, Buffer buffer);
  /// nullptr when there is none. It is good until the buffers are changed.
  [[nodiscard]] const Buffer* buffer(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, Buffer, std::less<>>& buffers() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace trainyard
