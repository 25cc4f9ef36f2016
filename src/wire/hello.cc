#include "wire/hello.h"

#include <algorithm>
#include <cstddef>
#include <expected>
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

namespace {

/// Names and tokens that somebody sends are cut or refused beyond this.
constexpr std::size_t kNameBytesMax = 256;

Result<Role> parse_role(const std::string& text) {
  static constexpr auto kRoles = words_of<Role>();
  const auto found = std::ranges::find(kRoles, text);
  if (found != kRoles.end()) return static_cast<Role>(found - kRoles.begin());
  return std::unexpected(Error{
      fmt::format("'role': unknown role '{}'; there are control, task, helper, rank and worker",
                  utf8_prefix(text, kNameBytesMax))});
}

/// A member that may be missing.
Result<std::string> optional_text(const nlohmann::json& fields, const char* name) {
  return fields.contains(name) ? text_field(fields, name) : std::string();
}

/// The same for a number of ranks.
Result<std::optional<int>> optional_number(const nlohmann::json& fields, const char* name) {
  constexpr std::int64_t kNumberMax = 1'000'000;
  const auto member = fields.find(name);
  if (member == fields.end()) return std::nullopt;
  if (!member->is_number_integer() || *member < 0 || *member > kNumberMax) {
    return std::unexpected(Error{fmt::format("'{}' must be a whole number", name)});
  }
  return member->get<int>();
}

Result<Hello> hello_of(std::string_view text) {
  const auto fields = parse_fields(text);
  if (!fields) return std::unexpected(fields.error());
  const auto role_text = text_field(*fields, "role");
  if (!role_text) return std::unexpected(role_text.error());
  const auto role = parse_role(*role_text);
  if (!role) return std::unexpected(role.error());
  Hello hello{.role = *role, .version = 0};
  const auto version = fields->find("version");
  if (version == fields->end()) return std::unexpected(Error{"'version' is missing"});
  constexpr std::int64_t kVersionMax = 1'000'000;
  if (!version->is_number_integer() || *version < 0 || *version > kVersionMax) {
    return std::unexpected(Error{"'version' must be a whole number"});
  }
  hello.version = version->get<int>();
  auto program = optional_text(*fields, "program");
  if (!program) return std::unexpected(std::move(program.error()));
  hello.program = utf8_prefix(*program, kNameBytesMax);
  auto token = optional_text(*fields, "token");
  if (!token) return std::unexpected(std::move(token.error()));
  if (token->size() > kNameBytesMax) return std::unexpected(Error{"'token' is too long"});
  hello.token = std::move(*token);
  for (const auto& [name, number] : {std::pair{"rank", &hello.rank}, {"ranks", &hello.ranks}}) {
    const auto read = optional_number(*fields, name);
    if (!read) return std::unexpected(read.error());
    *number = *read;
  }
  return hello;
}

Result<Welcome> welcome_of(std::string_view text) {
  const auto fields = parse_fields(text);
  if (!fields) return std::unexpected(fields.error());
  const auto good = fields->find("ok");
  if (good == fields->end() || !good->is_boolean()) {
    return std::unexpected(Error{"'ok' must be true or false"});
  }
  auto server = optional_text(*fields, "server");
  if (!server) return std::unexpected(std::move(server.error()));
  auto error = optional_text(*fields, "error");
  if (!error) return std::unexpected(std::move(error.error()));
  return Welcome{.ok = good->get<bool>(), .server = std::move(*server), .error = std::move(*error)};
}

}  // namespace

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
  auto hello = hello_of(fields);
  if (!hello) return std::unexpected(std::move(hello.error()).in("hello"));
  return hello;
}

Result<Welcome> read_welcome(std::string_view fields) {
  auto welcome = welcome_of(fields);
  if (!welcome) return std::unexpected(std::move(welcome.error()).in("answer to hello"));
  return welcome;
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
