# Finds what is installed, and asks again at each configure: packages come and go between two of them. CMake by
# itself remembers for the life of a build tree what a check did not find, and what a search did find.
include(CheckIncludeFile)
include(CheckLanguage)

# Forgets a path that an earlier configure found, if it is gone: hf_forget_gone(VARIABLE [FILE-BELOW-IT]).
function(hf_forget_gone variable)
  string(JOIN "/" file "${${variable}}" ${ARGN})
  if(IS_ABSOLUTE "${file}" AND NOT EXISTS "${file}")
    unset(${variable} CACHE)
  endif()
endfunction()

find_package(Threads REQUIRED)

if(HF_TLS)
  hf_forget_gone(OPENSSL_INCLUDE_DIR openssl/ssl.h)
  hf_forget_gone(OPENSSL_SSL_LIBRARY)
  hf_forget_gone(OPENSSL_CRYPTO_LIBRARY)
  find_package(OpenSSL 3 REQUIRED)
endif()

# ZooKeeper's library is loaded when it is needed; to build, its headers are enough. One benchmark links to it.
unset(HF_HAVE_ZOOKEEPER CACHE)
if(HF_ZOOKEEPER)
  check_include_file(zookeeper/zookeeper.h HF_HAVE_ZOOKEEPER)
  hf_forget_gone(HF_ZOOKEEPER_LIBRARY)
  find_library(HF_ZOOKEEPER_LIBRARY zookeeper_mt)
endif()

if(HF_TESTS AND NOT HF_CMOCKA_STAND_IN)
  hf_forget_gone(HF_CMOCKA_DIR cmocka.h)
  hf_forget_gone(HF_CMOCKA)
  find_path(HF_CMOCKA_DIR cmocka.h)
  find_library(HF_CMOCKA cmocka)
endif()

if(HF_TESTS AND HF_TESTS_CXX)
  # What CMake knows of a compiler that is gone must not be believed of the next one.
  hf_forget_gone(CMAKE_CXX_COMPILER)
  if(NOT CMAKE_CXX_COMPILER)
    unset(CMAKE_CXX_COMPILER CACHE)
    file(REMOVE ${CMAKE_PLATFORM_INFO_DIR}/CMakeCXXCompiler.cmake)
  endif()
  check_language(CXX)
endif()
