// Command passes passes one step three times and another one once.
package main

import (
	"fmt"

	"holdfast.dev/libs/failpoint"
)

func main() {
	for i := range 3 {
		failpoint.Here("step.written")
		fmt.Println(i)
	}
	failpoint.Here("step.committed")
}
