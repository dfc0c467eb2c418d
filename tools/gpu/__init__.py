"""The checks of `gpu_check`: of the machine, of commands, of kernels, and of their speed."""
