module example

go 1.19

require uas-gateway/client v0.0.0

replace uas-gateway/client => ../../dist/clients/go
