// Counts primes below a million as often as the argument says: a goroutine for each block, results through a channel.
package main

import (
	"fmt"
	"os"
	"strconv"
)

const limit, block, primes = 1_000_000, 10_000, 78_498

func count(from int, small []int, results chan<- int) {
	composite := make([]bool, block)
	for _, prime := range small {
		first := max(prime*prime, (from+prime-1)/prime*prime)
		for n := first; n < from+block; n += prime {
			composite[n-from] = true
		}
	}
	found := 0
	for n := from; n < from+block; n++ {
		if n > 1 && !composite[n-from] {
			found++
		}
	}
	results <- found
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func smallPrimes() []int {
	small := []int{}
	for n := 2; n*n <= limit; n++ {
		prime := true
		for _, p := range small {
			prime = prime && n%p != 0
		}
		if prime {
			small = append(small, n)
		}
	}
	return small
}

func main() {
	repetitions, _ := strconv.Atoi(os.Args[1])
	small := smallPrimes()
	for i := 0; i < repetitions; i++ {
		results := make(chan int)
		for from := 0; from < limit; from += block {
			go count(from, small, results)
		}
		found := 0
		for from := 0; from < limit; from += block {
			found += <-results
		}
		if found != primes {
			fmt.Println("sieve WRONG", found)
			os.Exit(1)
		}
	}
	fmt.Println("sieve ok")
}
