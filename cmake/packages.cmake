# Finds the installed packages, anew at each configure, since packages are installed and removed in between.
# On its own CMake would keep the result of a failed check, and that of a successful search, in the build tree.
include(CheckIncludeFile)
include(CheckLanguage)

# Unsets the path that an earlier configure found if it does not exist any more:
# hf_forget_gone(VARIABLE [FILE-BELOW-IT])
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

# ZooKeeper's library is loaded at run time, so its headers are enough to build. Only one benchmark links with it.
unset(HF_HAVE_ZOOKEEPER CACHE)
if(HF_ZOOKEEPER)
  check_include_file(zookeeper/zookeeper.h HF_HAVE_ZOOKEEPER)
  hf_forget_gone(HF_ZOOKEEPER_LIBRARY)
  find_library(HF_ZOOKEEPER_LIBRARY zookeeper_mt)
endif()

# Only holdfast-top needs it. A static terminfo may be a library of its own.
unset(HF_HAVE_NCURSES)
if(HF_TOP)
  hf_forget_gone(HF_NCURSES_LIBRARY)
  hf_forget_gone(HF_TINFO_LIBRARY)
  unset(HF_HAVE_CURSES_H CACHE)
  find_library(HF_NCURSES_LIBRARY ncursesw)
  find_library(HF_TINFO_LIBRARY tinfo)
  check_include_file(curses.h HF_HAVE_CURSES_H)
  if(HF_NCURSES_LIBRARY AND HF_HAVE_CURSES_H)
    set(HF_HAVE_NCURSES ON)
    set(HF_NCURSES ${HF_NCURSES_LIBRARY})
    if(HF_TINFO_LIBRARY)
      list(APPEND HF_NCURSES ${HF_TINFO_LIBRARY})
    endif()
  endif()
endif()

# Only holdfast-web needs it.
hf_forget_gone(HF_LIBEVENT_DIR event2/http.h)
hf_forget_gone(HF_LIBEVENT_CORE)
hf_forget_gone(HF_LIBEVENT_EXTRA)
find_path(HF_LIBEVENT_DIR event2/http.h)
find_library(HF_LIBEVENT_CORE event_core)
find_library(HF_LIBEVENT_EXTRA event_extra)
set(HF_HAVE_LIBEVENT OFF)
if(HF_WEB AND HF_LIBEVENT_DIR AND HF_LIBEVENT_CORE AND HF_LIBEVENT_EXTRA)
  set(HF_HAVE_LIBEVENT ON)
endif()

if(HF_TESTS AND NOT HF_CMOCKA_STAND_IN)
  hf_forget_gone(HF_CMOCKA_DIR cmocka.h)
  hf_forget_gone(HF_CMOCKA)
  find_path(HF_CMOCKA_DIR cmocka.h)
  find_library(HF_CMOCKA cmocka)
endif()

if(HF_TESTS AND HF_TESTS_CXX)
  # What CMake knows about a compiler that was removed must not be used for the next one.
  hf_forget_gone(CMAKE_CXX_COMPILER)
  if(NOT CMAKE_CXX_COMPILER)
    unset(CMAKE_CXX_COMPILER CACHE)
    file(REMOVE ${CMAKE_PLATFORM_INFO_DIR}/CMakeCXXCompiler.cmake)
  endif()
  check_language(CXX)
endif()
