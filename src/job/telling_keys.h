// The keys of a job file for news about its run: `notify` and `on-finish`.
//
// An address may be a secret, and the journal keeps the text of the job file: the stored text has
// only the host of the address. Pure.
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

/// The maximum number of addresses of a job.
constexpr std::size_t kAddressesMax = 8;

/// `root` is the mapping of the whole file. Mistakes are added.
TellingSpec read_telling(const text::Complainer& to, const text::YamlNode& root);

struct Addresses {
  std::vector<text::WebAddress> addresses;
  std::vector<std::string> notes;  ///< About variables that hold no address.
};
/// The configured addresses, and those that variables hold (`$SLACK_WEBHOOK`), of `environment`
/// (NAME=value).
Addresses addresses_of(const TellingSpec& spec, const std::vector<std::string>& environment);

/// A text that may contain one of the addresses verbatim, without their secret parts.
std::string without_secrets(std::string text, const std::vector<text::WebAddress>& addresses);

}  // namespace trainyard::job
