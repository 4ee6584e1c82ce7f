// What does an AngularJS (1.x) app look like to an explorer? Directives in templates, listeners added by jqLite.
const find = (name) => `found: ${APP}-${name}`;
const to = (view) => (ROUTING === "hash" ? `${BASE}#!/${view}` : BASE + view);

// What is on the pages does not depend on how they are routed: it is there, and clicked, in one of the two apps.
const HOME = ROUTING === "hash" ? `<main><h1>{{ find('home') }}</h1></main>` : `<main>
  <h1>{{ find('home') }}</h1>
  <section><button aria-haspopup="menu" ng-click="menu = !menu">{{ app }} menu</button>
    <ul ng-if="menu" role="menu"><li role="menuitem" ng-click="choose()">{{ app }} choice</li></ul>
    <p ng-if="choice">{{ find('choice') }}</p></section>
  <section><button ng-click="modal = true">{{ app }} dialog</button>
    <div ng-if="modal" role="dialog" aria-modal="true"><p>{{ find('modal') }}</p><button ng-click="leave()">Done</button></div></section>
  <section><div role="tablist"><button role="tab" ng-click="tab = 1">{{ app }} first tab</button>
    <button role="tab" ng-click="tab = 2">{{ app }} second tab</button></div>
    <p ng-if="tab === 1">One</p><blockquote ng-if="tab === 2">{{ find('tab-2') }}</blockquote></section>
  <section><div ng-click="box = true">{{ app }} plain box</div><p ng-if="box">{{ find('clicked') }}</p></section>
  <section><div ng-dblclick="twice = true">{{ app }} double box</div><p ng-if="twice">{{ find('twice') }}</p></section>
  <section><div ng-mouseenter="entered = true">{{ app }} hover box</div><p ng-if="entered">{{ find('entered') }}</p></section>
  <section><label>{{ app }} key field<input ng-keydown="key = true"></label><p ng-if="key">{{ find('key') }}</p></section>
</main>`;
const LIST = `<main><h2>{{ find('list') }}</h2><ul><li ng-repeat="n in [1, 2]"><a ng-href="{{ to('item/' + n) }}">{{ app }} item {{ n }}</a></li></ul></main>`;

angular
  .module("fixture", ["ngRoute"])
  .run(($rootScope) => Object.assign($rootScope, { app: APP, find, to }))
  .config(($locationProvider, $routeProvider) => {
    $locationProvider.html5Mode(ROUTING === "history");
    $routeProvider
      .when("/", {
        template: HOME,
        controller: function ($scope) {
          $scope.tab = 1;
          $scope.choose = () => Object.assign($scope, { menu: false, choice: true });
          $scope.leave = () => Object.assign($scope, { modal: false });
        },
      })
      .when("/list", { template: LIST })
      .when("/about", { template: "<main><p>{{ find('about') }}</p></main>" })
      .when("/item/:id", {
        template: "<main><article>{{ find('item-' + id) }}</article></main>",
        controller: function ($scope, $routeParams) {
          $scope.id = $routeParams.id;
        },
      });
  });
const root = document.querySelector("#app");
root.innerHTML = `<nav><a ng-href="{{ to('') }}">{{ app }} home</a> <a ng-href="{{ to('list') }}">{{ app }} list</a>
  <a ng-href="{{ to('about') }}">{{ app }} about</a></nav><div ng-view></div>`;
angular.bootstrap(root, ["fixture"]);
