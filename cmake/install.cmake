# Installs everything, and what other builds need to find it: pkg-config and a CMake package.
include(CMakePackageConfigHelpers)

set(HF_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Holdfast)

# The command finds the library by its relative path, wherever both are installed.
file(RELATIVE_PATH HF_TO_LIB ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set_target_properties(holdfast_command PROPERTIES INSTALL_RPATH "$ORIGIN/${HF_TO_LIB}")
install(TARGETS holdfast_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# The programs that the command starts are found by a relative path too.
set(HF_PROGRAMS_DIR ${CMAKE_INSTALL_LIBEXECDIR}/holdfast)
file(RELATIVE_PATH HF_TO_LIBEXEC ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBEXECDIR}/holdfast)
file(RELATIVE_PATH HF_LIBEXEC_TO_LIB ${CMAKE_INSTALL_FULL_LIBEXECDIR}/holdfast ${CMAKE_INSTALL_FULL_LIBDIR})
set_property(SOURCE cli/program.c APPEND PROPERTY COMPILE_DEFINITIONS "HF_TO_LIBEXEC=\"${HF_TO_LIBEXEC}\"")
if(TARGET holdfast_top)
  set_target_properties(holdfast_top PROPERTIES INSTALL_RPATH "$ORIGIN/${HF_LIBEXEC_TO_LIB}")
  install(TARGETS holdfast_top RUNTIME DESTINATION ${HF_PROGRAMS_DIR})
endif()
if(TARGET holdfast_web)
  set_target_properties(holdfast_web PROPERTIES INSTALL_RPATH "$ORIGIN/${HF_LIBEXEC_TO_LIB}")
  install(TARGETS holdfast_web RUNTIME DESTINATION ${HF_PROGRAMS_DIR})
endif()
install(TARGETS holdfast holdfast_static EXPORT HoldfastTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Nothing is linked with the module, so it needs no link without a version.
if(HF_TLS)
  install(TARGETS holdfast_tls LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP)
  set(HF_PC_REQUIRES "openssl >= 3")
  set(HF_FIND_OPENSSL "find_dependency(OpenSSL 3)")
endif()
install(DIRECTORY include/holdfast DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_file(cmake/holdfast.pc.in holdfast.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/holdfast.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(EXPORT HoldfastTargets NAMESPACE Holdfast:: DESTINATION ${HF_CMAKE_DIR})
configure_package_config_file(cmake/HoldfastConfig.cmake.in HoldfastConfig.cmake
  INSTALL_DESTINATION ${HF_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/HoldfastConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/HoldfastConfig.cmake
              ${PROJECT_BINARY_DIR}/HoldfastConfigVersion.cmake
  DESTINATION ${HF_CMAKE_DIR})

file(GLOB HF_PAGES CONFIGURE_DEPENDS LICENSE *.md docs/*.md)
install(FILES ${HF_PAGES} DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/holdfast)
foreach(section 1 3 5 7)
  file(GLOB pages CONFIGURE_DEPENDS docs/man/*.${section})
  install(FILES ${pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

# Each shell expects its completions under another name.
set(HF_SHARE ${CMAKE_INSTALL_DATAROOTDIR})
install(FILES completions/holdfast.bash RENAME holdfast
  DESTINATION ${HF_SHARE}/bash-completion/completions)
install(FILES completions/_holdfast DESTINATION ${HF_SHARE}/zsh/site-functions)
install(FILES completions/holdfast.fish DESTINATION ${HF_SHARE}/fish/vendor_completions.d)
