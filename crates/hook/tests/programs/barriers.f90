! Barriers of OpenMP in Fortran: each thread writes before it waits at a barrier, and reads all after.
program barriers
  use omp_lib
  implicit none
  integer, parameter :: rounds = 100, most = 64
  integer :: mine(most), once(most), round, i
  once = 0
  call omp_set_num_threads(4)
  !$omp parallel private(round, i)
  do round = 1, rounds
    mine(omp_get_thread_num() + 1) = round
    !$omp barrier
    if (any(mine(1:omp_get_num_threads()) /= round)) stop 1
    !$omp do schedule(dynamic)
    do i = 1, most
      once(i) = once(i) + 1
    end do
    !$omp end do
    if (any(once /= round)) stop 2
    !$omp barrier
  end do
  !$omp end parallel
end program
