// checkpoint_vectors_test.cpp - the packed directories of tests/vectors/x1: valid ones unpack to their sources in the
// library and in the reference, invalid and hostile ones are refused by both.
#include <gmock/gmock.h>

#include <chrono>
#include <map>

#include "glyd/checkpoint.h"
#include "glyd_reference.hpp"
#include "temporary_tree.hpp"
#include "vectors_support.hpp"

namespace {

namespace fs = std::filesystem;
using vectors::read_text;
using vectors::TemporaryTree;
using vectors::Tree;
using vectors::tree_of;

fs::path folder_of(const char* kind) { return fs::path(GLYD_VECTORS).parent_path() / "x1" / kind; }

std::vector<fs::path> cases_in(const char* kind) {
  std::vector<fs::path> cases;
  for (const auto& entry : fs::directory_iterator(folder_of(kind))) cases.push_back(entry.path());
  std::sort(cases.begin(), cases.end());
  return cases;
}

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// What unpack must make. The repository cannot hold empty directories, so a list names them.
Tree expected_source(const fs::path& vector) {
  Tree tree = tree_of(vector / "source");
  for (const auto& directory : lines_of(vector / "directories")) tree[directory + "/"] = "";
  return tree;
}

glyd_status verify(const fs::path& directory) {
  glyd_verify_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  glyd_text* document = nullptr;
  const glyd_status status = glyd_checkpoint_verify(directory.c_str(), &options, &document);
  glyd_text_free(document);
  return status;
}

glyd_status unpack(const fs::path& directory, const fs::path& target) {
  glyd_unpack_options options{};
  options.struct_size = sizeof options;
  options.threads = 2;
  glyd_text* document = nullptr;
  const glyd_status status = glyd_checkpoint_unpack(directory.c_str(), target.c_str(), &options, &document);
  glyd_text_free(document);
  return status;
}

TEST(ValidCheckpoints, UnpackToTheirSources) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  const auto cases = cases_in("valid");
  ASSERT_GT(cases.size(), 12u);
  for (const auto& vector : cases) {
    SCOPED_TRACE(vector.filename().string());
    const TemporaryTree work;
    EXPECT_EQ(verify(vector / "packed"), GLYD_OK) << glyd_last_error();
    ASSERT_EQ(unpack(vector / "packed", work.path() / "back"), GLYD_OK) << glyd_last_error();
    EXPECT_EQ(vectors::difference(tree_of(work.path() / "back"), expected_source(vector)), "");
  }
}

TEST(ValidCheckpoints, UnpackToTheirSourcesInTheReference) {
  for (const auto& vector : cases_in("valid")) {
    SCOPED_TRACE(vector.filename().string());
    const TemporaryTree work;
    EXPECT_NO_THROW(glyd_reference::verify_checkpoint(vector / "packed"));
    ASSERT_NO_THROW(glyd_reference::unpack_checkpoint(vector / "packed", work.path() / "back"));
    EXPECT_EQ(vectors::difference(tree_of(work.path() / "back"), expected_source(vector)), "");
  }
}

// valid/base with the case's own files in place of its own, and without those that it removes.
void make_broken(const fs::path& vector, const fs::path& directory) {
  fs::copy(folder_of("valid") / "base" / "packed", directory, fs::copy_options::recursive);
  for (const auto& path : lines_of(vector / "removed")) fs::remove(directory / path);
  if (fs::exists(vector / "changed")) {
    fs::copy(vector / "changed", directory, fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
}

void expect_refused(const char* kind, std::size_t least) {
  const auto cases = cases_in(kind);
  ASSERT_GT(cases.size(), least);
  for (const auto& vector : cases) {
    SCOPED_TRACE(std::string(kind) + "/" + vector.filename().string());
    const TemporaryTree work;
    const fs::path directory = work.path() / "packed", back = work.path() / "back";
    make_broken(vector, directory);
    const std::string text = lines_of(vector / "status").at(0);
    const int status = std::stoi(text);
    const std::string words = text.substr(text.find(' ') + 1);
    EXPECT_EQ(verify(directory), status) << glyd_last_error();
    EXPECT_THAT(glyd_last_error(), testing::HasSubstr(words));
    EXPECT_EQ(unpack(directory, back), status) << glyd_last_error();
    EXPECT_FALSE(fs::exists(back));
    EXPECT_FALSE(fs::exists(work.path() / ".back.glyd-staging"));
    EXPECT_THROW(glyd_reference::verify_checkpoint(directory), glyd_reference::Corrupt);
    EXPECT_THROW(glyd_reference::unpack_checkpoint(directory, back), glyd_reference::Corrupt);
    EXPECT_FALSE(fs::exists(back));
  }
}

TEST(InvalidCheckpoints, AreRefused) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  expect_refused("invalid", 150);
}

TEST(HostileCheckpoints, AreRefusedAtOnce) {
  SKIP_UNLESS_ISA_RUNS_HERE();
  const auto begin = std::chrono::steady_clock::now();
  expect_refused("hostile", 20);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30));
}

}  // namespace
