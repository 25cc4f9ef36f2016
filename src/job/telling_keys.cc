#include "job/telling_keys.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"

namespace trainyard::job {
namespace {

constexpr std::string_view kWants =
    "'notify' must be an address, as in https://hooks.example.com/..., a variable that contains "
    "one, as in $SLACK_WEBHOOK, or a list of these";

bool is_variable(std::string_view text) {
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  if (text.size() < 2 || text.front() != '$' || (text[1] >= '0' && text[1] <= '9')) return false;
  return text.find_first_not_of(kLetters, 1) == std::string_view::npos;
}

void read_address(const text::Complainer& to, const text::YamlNode& node, TellingSpec& spec) {
  if (node.kind != text::YamlKind::Text) return to.complain(node, kWants);
  if (spec.notify.size() == kAddressesMax) {
    return to.complain(node, fmt::format("notify: more than {} addresses", kAddressesMax));
  }
  if (node.text.starts_with('$')) {
    if (!is_variable(node.text)) {
      return to.complain(node, "notify: a variable must be written as in $SLACK_WEBHOOK");
    }
  } else if (const auto address = text::read_web_address(node.text); !address) {
    return to.complain(node, fmt::format("notify: {}", address.error().message));
  } else if (!to.document().has_written(node.text)) {
    // The stored copy of the file must not contain the secret, which is searched for verbatim.
    return to.complain(node, "notify: the address must be plain text, without escapes");
  }
  spec.notify.push_back(node.text);
}

}  // namespace

TellingSpec read_telling(const text::Complainer& to, const text::YamlNode& root) {
  TellingSpec spec;
  if (const text::YamlNode* notify = root.find("notify")) {
    if (notify->kind == text::YamlKind::List) {
      for (const text::YamlNode* const item : notify->items) read_address(to, *item, spec);
    } else {
      read_address(to, *notify, spec);
    }
  }
  if (const text::YamlNode* command = root.find("on-finish")) {
    if (command->kind != text::YamlKind::Text) {
      to.complain(*command, "'on-finish' must be text for the shell, as in ./summarize.sh");
    } else if (command->text.find_first_not_of(" \t\r\n") == std::string::npos) {
      to.complain(*command, "'on-finish' is empty");
    } else if (command->text.contains('\0')) {
      to.complain(*command, fmt::format("on-finish: {}", text::kNoNul));
    } else {
      spec.on_finish = command->text;
    }
  }
  return spec;
}

Addresses addresses_of(const TellingSpec& spec, const std::vector<std::string>& environment) {
  Addresses found;
  const auto add = [&found](const std::string& written, std::string_view value) {
    if (auto address = text::read_web_address(value)) {
      found.addresses.push_back(std::move(*address));
    } else {
      found.notes.push_back(fmt::format("notify: {}: {}", written, address.error().message));
    }
  };
  for (const std::string& written : spec.notify) {
    if (!written.starts_with('$')) {
      add(written, written);
      continue;
    }
    const std::string start = written.substr(1) + "=";
    const auto variable = std::ranges::find_if(
        environment, [&start](const std::string& it) { return it.starts_with(start); });
    if (variable == environment.end()) {
      found.notes.push_back(
          fmt::format("notify: {} is not set, so nothing is sent to it", written));
    } else {
      add(written, std::string_view(*variable).substr(start.size()));
    }
  }
  return found;
}

std::string without_secrets(std::string text, const std::vector<text::WebAddress>& addresses) {
  // The longest first: one may begin another.
  std::vector<const text::WebAddress*> order;
  order.reserve(addresses.size());
  for (const text::WebAddress& address : addresses) order.push_back(&address);
  std::ranges::sort(order,
                    [](const auto* a, const auto* b) { return a->url.size() > b->url.size(); });
  for (const text::WebAddress* const address : order) {
    const std::string shown = address->shown();
    for (auto at = text.find(address->url); at != std::string::npos;
         at = text.find(address->url, at + shown.size())) {
      text.replace(at, address->url.size(), shown);
    }
  }
  return text;
}

}  // namespace trainyard::job
