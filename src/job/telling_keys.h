// The keys of a job file that say who is told how its run goes: `notify` and `on-finish`.
//
// An address may be a secret, and the journal keeps the text of the job file: what stands in it is
// the address with its host alone. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "job/job_spec.h"
#include "text/key_reader.h"
#include "text/mistake.h"
#include "text/web_address.h"
#include "text/yaml_reader.h"

namespace trainyard::job {

/// How many addresses a job has at most.
constexpr std::size_t kAddressesMax = 8;

/// `root` is the mapping of the whole file. Mistakes are added.
TellingSpec read_telling(const text::Complainer& to, const text::YamlNode& root);

struct Addresses {
  std::vector<text::WebAddress> addresses;
  std::vector<std::string> notes;  ///< Of those that a variable should have named.
};
/// The addresses that are written, and those that variables hold (`$SLACK_WEBHOOK`), of
/// `environment` (NAME=value).
Addresses addresses_of(const TellingSpec& spec, const std::vector<std::string>& environment);

/// Any text that may hold one of the addresses as it is written, without what is secret of it.
std::string without_secrets(std::string text, const std::vector<text::WebAddress>& addresses);

}  // namespace trainyard::job
