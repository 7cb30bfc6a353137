module tidings/benchmarks/quamina

go 1.21

require quamina.net/go/quamina v1.5.1
