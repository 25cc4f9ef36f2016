#include "workers/parallel_options.h"

#include <fstream>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sys/test_directory.h"

namespace trainyard::workers {
namespace {

using testing::HasSubstr;

std::string wrong(const ParallelOptions& options) {
  const auto plan = plan_workers(options);
  return plan ? "" : plan.error().message;
}

ParallelOptions attached(const std::string& server, NatsOptions nats) {
  return {.attach_to = {server}, .run = "r", .joins = true, .nats = std::move(nats)};
}

TEST(ParallelOptions, GiveEachWorkerAPortOfItsOwn) {
  EXPECT_EQ(wrong({.workers = 2, .ports = {6'000, 6'000}}),
            "two workers have the port 6000: give each another one, or only the first");
  EXPECT_EQ(wrong({.workers = 2, .ports = {6'000}}), "");
}

TEST(ParallelOptions, GiveAWorkerEachRoleOnce) {
  const Role a{"a"};
  const Role b{"b"};
  EXPECT_EQ(wrong({.workers = 2, .node_ids = {4}, .roles = {{a, b}, {b, a, b}}}),
            "roles of worker 5: duplicate role 'b'");
  EXPECT_EQ(wrong({.workers = 2, .roles = {{a, b}, {a, b}}}), "");
}

TEST(ParallelOptions, RefuseNamesThatNoRoleAndNoLabelCanHave) {
  const std::string reserved =
      "'standalone' is reserved: pipelines have the labels standalone, distributed, async and "
      "node.<number> anyway; use another name, such as 'learner'";
  const std::string empty = "'' is not a valid name; use 1 to 64 letters, digits, '_', '-' and '.'";
  EXPECT_EQ(wrong({.workers = 2, .roles = {{}, {Role{"standalone"}}}}),
            "roles of worker 1: " + reserved);
  EXPECT_EQ(wrong({.roles = {{Role{""}}}}), "roles of worker 0: " + empty);
  EXPECT_EQ(wrong({.labels = {"gpu", "standalone"}}), "labels: " + reserved);
  EXPECT_EQ(wrong({.labels = {""}}), "labels: " + empty);
  EXPECT_EQ(wrong({.labels = {"gpu"}, .roles = {{}}}), "");
}

TEST(ParallelOptions, RefuseATokenBesideAUser) {
  EXPECT_EQ(
      wrong(attached("nats://a", {.token = "t", .user = "u", .password = "p"})),
      "token (TRAINYARD_NATS_TOKEN) and user (TRAINYARD_NATS_USER) are both set, and a server "
      "takes one of them: unset the other");
  EXPECT_EQ(wrong(attached("nats://a", {.token = "t"})), "");
  EXPECT_EQ(wrong(attached("nats://a", {.user = "u", .password = "p"})), "");
}

TEST(ParallelOptions, RefuseATokenOrAUserBesideThoseOfAnAddress) {
  const auto why = [](const std::string& what) {
    return "attach_to (--attach) has an address with a token or a user, and " + what +
           " is set, too: a server takes one of them, so unset it or write the address as "
           "nats://host:4222";
  };
  for (const std::string server : {"nats://secret@a", "nats://u:secret@a", "tls://secret@a"}) {
    EXPECT_EQ(wrong(attached(server, {.user = "u", .password = "p"})),
              why("user (TRAINYARD_NATS_USER)"));
    EXPECT_EQ(wrong(attached(server, {.token = "t"})), why("token (TRAINYARD_NATS_TOKEN)"));
    EXPECT_EQ(wrong(attached(server, {})), "");
  }
  ParallelOptions second = attached("nats://a", {.token = "t"});
  second.attach_to.emplace_back("nats://secret@b");
  EXPECT_EQ(wrong(second), why("token (TRAINYARD_NATS_TOKEN)"));
}

TEST(ParallelOptions, AreNamedAsInAProgramAndAsOnTheCommandLine) {
  EXPECT_EQ(wrong({.attach_to = {"nats://a"}, .run = "a b", .joins = true}),
            "run (--run): the name of a run must have 1 to 64 letters, digits, '-' and '_'");
  EXPECT_EQ(wrong({.attach_to = {"nats://a", "tls://b"}, .run = "r", .joins = true}),
            "attach_to (--attach): either all addresses are tls:// or none");
}

TEST(ParallelOptions, RefuseCertificatesWhereThereIsNoTls) {
  const std::string why =
      "ca_file (--nats-ca) and host_name (--nats-host) are for tls:// and have no effect on "
      "nats://: write the addresses as tls://host:4222, or leave them out";
  EXPECT_EQ(wrong(attached("nats://a", {.ca_file = "/etc/hostname"})), why);
  EXPECT_EQ(wrong(attached("nats://a", {.host_name = "b"})), why);
  EXPECT_EQ(wrong(attached("tls://a", {.host_name = "b"})), "");
}

TEST(ParallelOptions, NameAFileThatCannotBeRead) {
  const sys::TemporaryDirectory directory;
  const std::string path = directory / "file";
  EXPECT_EQ(wrong(attached("tls://a", {.ca_file = path})),
            "ca_file (--nats-ca): cannot read '" + path +
                "': no such file or directory; give a file of certificates (PEM)");
  EXPECT_EQ(wrong(attached("nats://a", {.nkey = "U", .nkey_seed_file = path})),
            "nkey_seed_file (--nats-seed): cannot read '" + path +
                "': no such file or directory; give the file that has the seed of the nkey");
  EXPECT_THAT(wrong(attached("tls://a", {.ca_file = directory.path()})),
              HasSubstr(": is a directory; "));
  std::ofstream(path) << "x";
  EXPECT_EQ(wrong(attached("tls://a", {.nkey = "U", .nkey_seed_file = path, .ca_file = path})), "");
}

}  // namespace
}  // namespace trainyard::workers
