# Compiler and linker flags for every target.
add_compile_options(-Wall -Wextra -Wshadow -Wpointer-arith -Wvla
  "$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes;-Wmissing-prototypes>")
if(HF_WERROR)
  add_compile_options(-Werror)
endif()

# For every C file, so that none has to define it; C++ compilers define it on their own.
add_compile_definitions($<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)

if(HF_SANITIZE)
  add_compile_options(-fsanitize=${HF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HF_SANITIZE})
endif()
if(HF_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
