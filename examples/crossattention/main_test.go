package main

func Example() {
	main()
	// Output: [2 5 128] [2 8 5 6] [32 128]
}
