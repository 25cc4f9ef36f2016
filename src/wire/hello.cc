#include "wire/hello.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "wire/field_reader.h"
#include "wire/frame.h"
#include "wire/struct_fields.h"

namespace trainyard::wire {

TRAINYARD_WORDS(Role, (Control, "control"), (Task, "task"), (Helper, "helper"), (Rank, "rank"),
                (Worker, "worker"));

std::string_view to_text(Role role) { return word_of(role); }

std::string to_fields(const Hello& hello) {
  nlohmann::json fields{
      {"role", to_text(hello.role)}, {"version", hello.version}, {"program", hello.program}};
  if (!hello.token.empty()) fields["token"] = hello.token;
  if (hello.rank) fields["rank"] = *hello.rank;
  if (hello.ranks) fields["ranks"] = *hello.ranks;
  return fields_text(fields);
}

std::string to_fields(const Welcome& welcome) {
  nlohmann::json fields{{"ok", welcome.ok}, {"server", welcome.server}};
  if (!welcome.ok) fields["error"] = welcome.error;
  return fields_text(fields);
}

Result<Hello> read_hello(std::string_view fields) {
  constexpr std::size_t kNameBytesMax = 256;
  constexpr std::int64_t kNumberMax = 1'000'000;
  static constexpr auto kRoles = words_of<Role>();
  FieldReader from(fields);
  const auto number = [&from](const char* name) {
    return from.number(name, kNumberMax).transform([](std::int64_t it) {
      return static_cast<int>(it);
    });
  };
  const std::string role = from.needed_text("role");
  const auto known = std::ranges::find(kRoles, role);
  if (known == kRoles.end()) {
    from.fail_unknown("role", "control, task, helper, rank or worker", role);
  }
  Hello hello{.role = static_cast<Role>(known - kRoles.begin()),
              .version = static_cast<int>(from.needed_number("version", kNumberMax)),
              .program = std::string(utf8_prefix(from.text("program"), kNameBytesMax)),
              .token = from.text("token", kNameBytesMax),
              .rank = number("rank"),
              .ranks = number("ranks")};
  return std::move(from).give(std::move(hello), "hello");
}

Result<Welcome> read_welcome(std::string_view fields) {
  FieldReader from(fields);
  Welcome welcome{
      .ok = from.needed_flag("ok"), .server = from.text("server"), .error = from.text("error")};
  return std::move(from).give(std::move(welcome), "answer to hello");
}

Welcome answer(const Hello& hello, std::string_view server) {
  Welcome welcome{.ok = false, .server = std::string(server)};
  if (hello.version != kProtocolVersion) {
    welcome.error = fmt::format("version {} of the protocol is not spoken here, {} is",
                                hello.version, kProtocolVersion);
  } else {
    welcome.ok = true;
  }
  return welcome;
}

}  // namespace trainyard::wire
