! A malleable program in Fortran: it prints how many threads each of its regions had, and a sum that does not depend on that.
!
!     gfortran -fopenmp examples/regions.f90 -lcosched_hook -o regions
module cosched
  use iso_c_binding
  implicit none
  interface
    integer(c_int) function cosched_register() bind(c)
      import :: c_int
    end function
    integer(c_int) function cosched_region(requested) bind(c)
      import :: c_int
      integer(c_int), value :: requested
    end function
    integer(c_int) function cosched_cpus() bind(c)
      import :: c_int
    end function
    subroutine cosched_progress(ticks) bind(c)
      import :: c_int64_t
      integer(c_int64_t), value :: ticks
    end subroutine
  end interface
end module

program regions
  use cosched
  implicit none
  integer :: step, i, threads
  integer(c_int64_t) :: total

  total = 0
  do step = 1, 3
    threads = cosched_region(4_c_int)
    write (*, '(i0, 1x)', advance='no') threads
    !$omp parallel do num_threads(threads) reduction(+: total)
    do i = 1, 1000
      total = total + i
    end do
    call cosched_progress(1_c_int64_t)
  end do
  write (*, '(a, i0)') 'sum ', total
end program
