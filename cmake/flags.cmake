# Compiler and linker flags that hold for every target.
set(HF_WARNINGS
  -Wall -Wextra -Wshadow -Wstrict-prototypes -Wpointer-arith
  -Wmissing-prototypes -Wvla)
add_compile_options(${HF_WARNINGS})
if(HF_WERROR)
  add_compile_options(-Werror)
endif()

# Defined empty, so that a file which says #define _GNU_SOURCE itself defines the same.
add_compile_options(-D_GNU_SOURCE=)

if(HF_SANITIZE)
  add_compile_options(-fsanitize=${HF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HF_SANITIZE})
endif()
if(HF_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
