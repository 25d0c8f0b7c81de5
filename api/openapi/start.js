// A file of its own, because the page allows no script within itself.
SwaggerUIBundle({
  url: "/schema/openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null, // else the schema would be sent to validator.swagger.io
});
