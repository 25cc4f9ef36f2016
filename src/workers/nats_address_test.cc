#include "workers/nats_address.h"

#include <gtest/gtest.h>

namespace trainyard::workers {
namespace {

TEST(NatsAddress, HasWhoAndWhere) {
  EXPECT_EQ(read_nats_address("nats://host:1").value(),
            (NatsAddress{.url = "nats://host:1", .name = "host:1", .is_secure = false}));
  EXPECT_EQ(read_nats_address("tls://host").value(),
            (NatsAddress{.url = "nats://host:4222", .name = "host:4222", .is_secure = true}));
  EXPECT_EQ(
      read_nats_address("nats://ty:p@ss@[::1]:4222/").value(),
      (NatsAddress{
          .url = "nats://ty:p@ss@[::1]:4222", .name = "[::1]:4222", .has_credentials = true}));
  EXPECT_TRUE(read_nats_address("nats://secret@host").value().has_credentials);
  EXPECT_EQ(read_nats_address("nats://[::1]").value().name, "[::1]:4222");
}

TEST(NatsAddress, IsNothingElseAndIsNotQuoted) {
  for (const std::string text :
       {"", "host:4222", "http://host", "nats://", "nats://secret@", "nats://host:0",
        "nats://host:65536", "nats://host:x", "nats://host:", "nats://a,b", "nats://a b",
        "nats://secret@host/path"}) {
    const auto read = read_nats_address(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(
        read.error().message,
        "an address of a server of NATS is nats://[token@|user:password@]host:port, or tls://");
  }
}

TEST(RunName, StandsInASubject) {
  EXPECT_TRUE(is_run_name("a-B_9"));
  for (const std::string text : {"", "a.b", "a b", "*", ">", "\xc3\xa4"}) {
    EXPECT_FALSE(is_run_name(text)) << text;
  }
  EXPECT_TRUE(is_run_name(std::string(64, 'x')));
  EXPECT_FALSE(is_run_name(std::string(65, 'x')));
  EXPECT_EQ(subject_of_machine("r", 0xAB), "trainyard.r.machine.00000000000000ab");
  EXPECT_EQ(subject_of_hub("r"), "trainyard.r.hub");
  EXPECT_EQ(subjects_of("r"), "trainyard.r.>");
}

}  // namespace
}  // namespace trainyard::workers
