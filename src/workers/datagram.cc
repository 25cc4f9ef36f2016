#include "workers/datagram.h"

#include "wire/frame.h"

namespace trainyard::workers {
namespace {

constexpr std::string_view kDatagramMagic = "TYMD";
constexpr std::size_t kAddressBytes = 24;

void put_number(std::string& text, std::size_t place, std::uint64_t number) {
  for (std::size_t i = 0; i < sizeof number; ++i) {
    text[place + i] = static_cast<char>((number >> (8 * i)) & 0xFFU);
  }
}

std::uint64_t number_at(std::string_view text, std::size_t place) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(text[place + i])} << (8 * i);
  }
  return number;
}

}  // namespace

void write_datagram_head(const Datagram& datagram, std::string& text) {
  text.replace(0, kDatagramMagic.size(), kDatagramMagic);
  text[4] = static_cast<char>(wire::kProtocolVersion);
  text[5] = static_cast<char>(datagram.kind);
  text[6] = datagram.missing ? '\1' : '\0';
  text[7] = '\0';
  put_number(text, 8, datagram.from);
  put_number(text, 16, datagram.to);
  put_number(text, 24, datagram.offset);
  put_number(text, 32, datagram.received);
  put_number(text, 40, datagram.window);
}

std::string datagram_text(const Datagram& datagram) {
  std::string text;
  text.reserve(kDatagramHeadBytes + datagram.bytes.size());
  text.resize(kDatagramHeadBytes);
  write_datagram_head(datagram, text);
  text += datagram.bytes;
  return text;
}

std::optional<Datagram> read_datagram(std::string_view text) {
  if (text.size() < kAddressBytes || !text.starts_with(kDatagramMagic)) return std::nullopt;
  const auto kind = static_cast<unsigned char>(text[5]);
  if (kind < 1 || kind > 4) return std::nullopt;
  Datagram datagram{.version = static_cast<std::uint8_t>(text[4]),
                    .kind = static_cast<Datagram::Kind>(kind),
                    .from = number_at(text, 8),
                    .to = number_at(text, 16)};
  if (datagram.version != wire::kProtocolVersion) return datagram;
  if (text.size() < kDatagramHeadBytes) return std::nullopt;
  datagram.missing = text[6] != '\0';
  datagram.offset = number_at(text, 24);
  datagram.received = number_at(text, 32);
  datagram.window = number_at(text, 40);
  datagram.bytes = text.substr(kDatagramHeadBytes);
  return datagram;
}

}  // namespace trainyard::workers
